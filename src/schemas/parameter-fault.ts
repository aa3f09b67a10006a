import { type Static, Type } from '@sinclair/typebox'
import { Component } from './component.ts'

/** Every way in which a query parameter can be at fault (contract items 2, 3 and 5). */
export const ParameterFaultCodes = {
  unknown_parameter: { meaning: 'There is no parameter of this name; the detail lists those' },
  repeated_parameter: { meaning: 'The parameter is given more than once' },
  invalid_format: { meaning: 'Not in digits, or not a day that exists, as the parameter demands' },
  out_of_range: { meaning: 'Well formed, but below or above what the parameter allows' },
  invalid_range: { meaning: '`from` is after `to`' },
} as const satisfies Record<string, { readonly meaning: string }>

const rows = Object.entries(ParameterFaultCodes).map(
  ([code, { meaning }]) => `| \`${code}\` | ${meaning} |`,
)

/** One of the codes above; its description is their table. */
export const ParameterFaultCode = Type.Unsafe<keyof typeof ParameterFaultCodes>({
  type: 'string',
  enum: Object.keys(ParameterFaultCodes),
  title: 'Code',
  description: [
    'The rule that the parameter breaks, for programs; from a closed list.',
    '',
    '| Code | Meaning |',
    '|---|---|',
    ...rows,
  ].join('\n'),
  examples: ['out_of_range'],
})
export type ParameterFaultCode = Static<typeof ParameterFaultCode>

/** One fault of one query parameter, as a 400 lists it. */
export const ParameterFault = Component(
  'ParameterFault',
  Type.Object(
    {
      parameter: Type.String({
        title: 'Parameter',
        description: 'Name of the query parameter, as the request wrote it.',
        examples: ['limit'],
      }),
      code: ParameterFaultCode,
      detail: Type.String({
        title: 'Detail',
        description: 'The rule in words, for people.',
        examples: ['limit must be between 1 and 10000.'],
      }),
    },
    {
      additionalProperties: false,
      title: 'Parameter fault',
      description: 'One fault of one query parameter.',
    },
  ),
)
export type ParameterFault = Static<typeof ParameterFault>
