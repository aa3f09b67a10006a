import { Type } from '@sinclair/typebox'

const ENTITY_TAG = 'W/"184.1741966927042118-Zk3yQm0v8T1xWb6sLr2dJg"'
const TRACE_ID = 'sync-2025-03-14-0042'

/** Every header that a response may have, by name. A route selects those of each status. */
export const ResponseHeaders = {
  'X-Request-ID': Type.String({
    description: 'Identifier of the request. Quote it when you report an error.',
    examples: ['6a0f2d94-71c3-4be8-9f25-d3b8e4c7a106'],
  }),
  'X-Client-Trace-ID': Type.String({
    maxLength: 128,
    description: '`X-Client-Trace-ID` of the request, if it is valid.',
    examples: [TRACE_ID],
  }),
  ETag: Type.String({
    description:
      'Opaque name of this state of the response, as a weak validator. Send it as ' +
      '`If-None-Match` with the next request for the same URL.',
    examples: [ENTITY_TAG],
  }),
  'Last-Modified': Type.String({
    description: 'Time of the last change of the connection’s data, as an HTTP date.',
    examples: ['Fri, 14 Mar 2025 15:42:07 GMT'],
  }),
  'Data-Version': Type.String({
    description:
      'Version of the connection’s data that the response has. Send it as `version` with further ' +
      'pages, so that all pages have the same state.',
    examples: [ENTITY_TAG.slice(3, ENTITY_TAG.indexOf('-'))],
  }),
  'Data-Refreshed': Type.String({
    format: 'date-time',
    description:
      'Time of the last refresh from the bank or broker, also if it changed nothing. Absent before the first ' +
      'one. A 304 has it, too. It is not a part of the `ETag`.',
    examples: ['2025-03-14T15:42:09Z'],
  }),
  'Cache-Control': Type.String({
    description:
      'The response is for one app only, and a cache must revalidate it before each use. An ' +
      'error (`no-store`) must not be stored.',
    examples: ['private, no-cache'],
  }),
  Link: Type.String({
    description:
      'URLs of other pages (RFC 8288): `first`, `prev`, `next` and `last`, relative to the URL ' +
      'of the request. The first page has no `prev`, the last one no `next`. An export has none.',
    examples: [
      '<?limit=1000&page=0>; rel="first", <?limit=1000&page=1>; rel="next", ' +
        '<?limit=1000&page=5>; rel="last"',
    ],
  }),
  'X-Total-Count': Type.Integer({
    format: 'int64',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Only in an export: its number of rows.',
    examples: [5213],
  }),
  'Content-Disposition': Type.String({
    description: 'Only in an export: a file name.',
    examples: ['attachment; filename="portfolio-transactions-from-2025-01-01.csv"'],
  }),
  'Content-Encoding': Type.String({
    description: 'Compression of the body; absent if the body is not compressed.',
    examples: ['gzip'],
  }),
  Vary: Type.String({
    description: 'Request headers that the form of the response depends on.',
    examples: ['accept-encoding'],
  }),
  'WWW-Authenticate': Type.String({
    description:
      'Authentication scheme (RFC 6750). It has `error="invalid_token"` if the request had a ' +
      'token that is not valid.',
    examples: ['Bearer realm="investment data", error="invalid_token"'],
  }),
  Allow: Type.String({
    description: 'Methods that this path supports.',
    examples: ['GET, HEAD'],
  }),
  'Retry-After': Type.Integer({
    format: 'int32',
    minimum: 0,
    maximum: 3600,
    description: 'Seconds to wait before the next attempt.',
    examples: [1],
  }),
  RateLimit: Type.String({
    description:
      'Rest of the quota, if a quota is set: `r` requests, until the quota is renewed in `t` ' +
      'seconds.',
    examples: ['"app";r=41;t=37'],
  }),
  'RateLimit-Policy': Type.String({
    description: 'The quota, if one is set: `q` requests in a window of `w` seconds.',
    examples: ['"app";q=60;w=60'],
  }),
}

/** Headers that depend on the request or the settings. All others are on every response of a status. */
export const OPTIONAL_HEADERS = new Set([
  ...['X-Client-Trace-ID', 'Content-Encoding', 'Link', 'X-Total-Count', 'Content-Disposition'],
  ...['RateLimit', 'RateLimit-Policy', 'Data-Refreshed'],
])

/** Request headers without `Authorization`. They have no pattern: unusable values have no effect. */
export const RequestHeaders = Type.Partial(
  Type.Object({
    'If-None-Match': Type.String({
      description:
        '`ETag` of a response that you have stored. If nothing has changed since, the response ' +
        'is 304 without a body.',
      examples: [ENTITY_TAG],
    }),
    'X-Client-Trace-ID': Type.String({
      description:
        'Your name for the request, up to 128 visible ASCII characters. The response repeats ' +
        'it. Any other value is ignored.',
      examples: [TRACE_ID],
    }),
  }),
)
