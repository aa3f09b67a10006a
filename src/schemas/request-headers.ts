import { type Static, Type } from '@sinclair/typebox'
import { ENTITY_TAG } from './response-headers.ts'

/**
 * The request headers that the service reads beside `Authorization`. They are not held to a form:
 * one that cannot be used is ignored, and never a reason for a 400.
 */
export const RequestHeaders = Type.Object(
  {
    'If-None-Match': Type.Optional(
      Type.String({
        title: 'If-None-Match',
        description:
          'The `ETag` of an answer that you still hold. If nothing has changed since, the answer ' +
          'is 304 without a body.',
        examples: [ENTITY_TAG],
      }),
    ),
    'X-Client-Trace-ID': Type.Optional(
      Type.String({
        title: 'X-Client-Trace-ID',
        description:
          'Your own name for the request, up to 128 visible ASCII characters; it comes back in ' +
          'the answer. Anything else is ignored.',
        examples: ['sync-2025-03-14-0042'],
      }),
    ),
  },
  { title: 'Request headers' },
)
export type RequestHeaders = Static<typeof RequestHeaders>
