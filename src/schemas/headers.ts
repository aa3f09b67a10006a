import { type Static, Type } from '@sinclair/typebox'

/** An entity tag as the service makes them: two numbers that name the state, a digest of the rest. */
const ENTITY_TAG = 'W/"184.1741966927042118-Zk3yQm0v8T1xWb6sLr2dJg"'

/** Every header that an answer may carry, by name; a route picks those of each status. */
export const ResponseHeaders = {
  'X-Request-ID': Type.String({
    description: 'Identifier that the service gave the request. Quote it when you report a fault.',
    examples: ['6a0f2d94-71c3-4be8-9f25-d3b8e4c7a106'],
  }),
  'X-Client-Trace-ID': Type.String({
    maxLength: 128,
    description: 'The `X-Client-Trace-ID` of the request, where it sent one that can be used.',
    examples: ['sync-2025-03-14-0042'],
  }),
  ETag: Type.String({
    description:
      'Names this state of this answer, as a weak validator, and means nothing else. Send it as ' +
      '`If-None-Match` when you ask for the same address again.',
    examples: [ENTITY_TAG],
  }),
  'Last-Modified': Type.String({
    description: 'When the data of the connection last changed, as an HTTP date.',
    examples: ['Fri, 14 Mar 2025 15:42:07 GMT'],
  }),
  'Cache-Control': Type.String({
    description:
      'The answer is for one app only, and a stored copy must be checked before it is used again; ' +
      'an error (`no-store`) is not stored at all.',
    examples: ['private, no-cache'],
  }),
  Link: Type.String({
    description:
      'Where the other pages are (RFC 8288): `first`, `prev`, `next` and `last`, relative to the ' +
      'address asked for. The first page has no `prev`, the last one no `next`.',
    examples: [
      '<?limit=1000&page=0>; rel="first", <?limit=1000&page=1>; rel="next", ' +
        '<?limit=1000&page=5>; rel="last"',
    ],
  }),
  'Content-Encoding': Type.String({
    description: 'Compression of the body; absent where it is not compressed.',
    examples: ['gzip'],
  }),
  Vary: Type.String({
    description: 'Request headers that the form of the answer depends on.',
    examples: ['accept-encoding'],
  }),
  'WWW-Authenticate': Type.String({
    description:
      'Scheme to authenticate with (RFC 6750). With `error="invalid_token"` where a token was ' +
      'sent and not accepted.',
    examples: ['Bearer realm="investment data", error="invalid_token"'],
  }),
  Allow: Type.String({
    description: 'Methods that this address answers.',
    examples: ['GET, HEAD'],
  }),
  'Retry-After': Type.Integer({
    minimum: 0,
    description: 'Seconds to wait before the next attempt.',
    examples: [1],
  }),
  RateLimit: Type.String({
    description:
      'What is left of the quota, where there is one: `r` requests, until it is renewed in `t` ' +
      'seconds.',
    examples: ['"app";r=41;t=37'],
  }),
  'RateLimit-Policy': Type.String({
    description: 'The quota, where there is one: `q` requests in a window of `w` seconds.',
    examples: ['"app";q=60;w=60'],
  }),
}

/** Headers that depend on the request or on the settings; all others are on every answer of a status. */
export const SOMETIMES = new Set([
  ...['X-Client-Trace-ID', 'Content-Encoding'],
  ...['RateLimit', 'RateLimit-Policy'],
])

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
