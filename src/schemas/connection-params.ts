import { type Static, Type } from '@sinclair/typebox'

/**
 * The path parameter that selects the connection (sections 4 and 5). Any string is let through: a
 * token of a wrong form must look like one that does not exist (contract item 18).
 */
export const ConnectionParams = Type.Object(
  {
    token: Type.String({
      title: 'Connection token',
      description:
        'Selects the connection. It is a credential of its own, beside the app token: keep it ' +
        'out of logs and of links that others see. A token that is unknown, or belongs to ' +
        'another app, gets the same 404.',
      examples: ['DEMOSMALL1'],
    }),
  },
  { additionalProperties: false, title: 'Connection' },
)
export type ConnectionParams = Static<typeof ConnectionParams>
