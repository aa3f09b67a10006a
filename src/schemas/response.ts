import { type TSchema, Type } from '@sinclair/typebox'
import { Reference } from './fields.ts'
import { type List, MEDIA_TYPES } from './list.ts'
import { Problem } from './problem.ts'

// What responses may have. A header is `required` if every response of its status has it. The groups of headers below name
// the files that set their values.

const RequestId = Type.String({
  required: true,
  description: 'Identifier of the request. Quote it when you report an error.',
  examples: ['6a0f2d94-71c3-4be8-9f25-d3b8e4c7a106'],
})

const ClientTraceId = Type.String({
  maxLength: 128,
  description: '`X-Client-Trace-ID` of the request, if it is valid.',
  examples: ['sync-2025-03-14-0042'],
})

const ETag = Type.String({
  required: true,
  description:
    'Opaque name of this state of the response, as a weak validator. Send it as `If-None-Match` ' +
    'with the next request for the same URL.',
  examples: ['W/"184.1741966927042118-Zk3yQm0v8T1xWb6sLr2dJg"'],
})

const DataVersion = Type.String({
  required: true,
  description:
    'Version of the connection’s data that the response has. Send it as `version` with further ' +
    'pages, so that all pages have the same state.',
  examples: ['184.1741966927042118'],
})

const DataRefreshed = Type.String({
  format: 'date-time',
  description:
    'Time of the last refresh from the bank or broker, also if it changed nothing. Absent before ' +
    'the first one. A 304 has it, too. It is not a part of the `ETag`.',
  examples: ['2025-03-14T15:42:09Z'],
})

const LastModified = Type.String({
  required: true,
  description: 'Time of the last change of the connection’s data, as an HTTP date.',
  examples: ['Fri, 14 Mar 2025 15:42:07 GMT'],
})

const CacheControl = Type.String({
  required: true,
  description:
    'The response is for one app only, and a cache must revalidate it before each use. An error ' +
    '(`no-store`) must not be stored.',
  examples: ['private, no-cache'],
})

const Vary = Type.String({
  required: true,
  description: 'Request headers that the form of the response depends on.',
  examples: ['accept, accept-encoding'],
})

const Link = Type.String({
  description:
    'URLs of other pages (RFC 8288): `first`, `prev`, `next` and `last`, relative to the URL of ' +
    'the request. The first page has no `prev`, the last one no `next`. An export has none.',
  examples: [
    '<?limit=1000&page=0>; rel="first", <?limit=1000&page=1>; rel="next", ' +
      '<?limit=1000&page=5>; rel="last"',
  ],
})

const HelpLink = Type.String({
  description:
    'Section of the error on the page `/docs` (RFC 8288), relative to the URL of the request. Absent if the service ' +
    'has no such page.',
  examples: ['<../../../../../../docs#invalid_request>; rel="help"'],
})

const TotalCount = Type.Integer({
  format: 'int64',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Only in an export: its number of rows.',
  examples: [5213],
})

const ContentDisposition = Type.String({
  description: 'Only in an export: a file name.',
  examples: ['attachment; filename="portfolio-transactions-from-2025-01-01.csv"'],
})

const ContentEncoding = Type.String({
  description: 'Compression of the body; absent if the body is not compressed.',
  examples: ['gzip'],
})

const Challenge = Type.String({
  required: true,
  description:
    'Authentication scheme (RFC 6750). It has `error="invalid_token"` if the request had a token ' +
    'that is not valid.',
  examples: ['Bearer realm="investment data", error="invalid_token"'],
})

const Allow = Type.String({
  required: true,
  description: 'Methods that this path supports.',
  examples: ['GET, HEAD'],
})

const RetryAfter = Type.Integer({
  required: true,
  format: 'int32',
  minimum: 0,
  maximum: 3600,
  description: 'Seconds to wait before the next attempt.',
  examples: [1],
})

const RateLimit = Type.String({
  description:
    'Rest of the quota, if a quota is set: `r` requests, until the quota is renewed in `t` seconds.',
  examples: ['"app";r=41;t=37'],
})

const RateLimitPolicy = Type.String({
  description: 'The quota, if one is set: `q` requests in a window of `w` seconds.',
  examples: ['"app";q=60;w=60'],
})

type Headers = Record<string, TSchema>

/** Set by http/request-context.ts, http/list-response.ts and http/error-handler.ts. */
const ofEveryResponse: Headers = {
  'X-Request-ID': RequestId,
  'X-Client-Trace-ID': ClientTraceId,
  'Cache-Control': CacheControl,
}

/** Set by http/quota.ts. */
const ofQuota: Headers = {
  RateLimit,
  'RateLimit-Policy': RateLimitPolicy,
}

/** Set by http/list-response.ts. */
const ofData: Headers = {
  ...ofEveryResponse,
  ETag,
  'Data-Version': DataVersion,
  'Data-Refreshed': DataRefreshed,
  'Last-Modified': LastModified,
  Vary,
  ...ofQuota,
}

/** An error. All of them have the same body. problem.ts has each error with its status, texts and headers. */
function error(description: string, headers: Headers = {}) {
  return {
    description,
    headers: { ...ofEveryResponse, Link: HelpLink, ...headers },
    content: { [MEDIA_TYPES.json]: { schema: Reference(Problem) } },
  }
}

/** Responses of every list besides 200. */
const OTHERS = {
  304: {
    type: 'null',
    description: 'The connection has not changed since the response in `If-None-Match`.',
    headers: ofData,
  },
  400: error('The parameters are not valid, or the request cannot be read.', {
    ...ofQuota,
    'Content-Encoding': ContentEncoding,
    Vary: { ...Vary, required: false },
  }),
  401: error('The app token is missing or not valid.', { 'WWW-Authenticate': Challenge }),
  404: error('The calling app has no connection with this token.', ofQuota),
  405: error('The method is neither `GET` nor `HEAD`.', { Allow }),
  429: error('The app has used up its quota.', { ...ofQuota, 'Retry-After': RetryAfter }),
  500: error('The service failed.'),
  503: error('The service is overloaded or has no database.', { 'Retry-After': RetryAfter }),
}

function jsonOf({ response, exact }: List) {
  return {
    [MEDIA_TYPES.json]: { schema: Reference(response) },
    [MEDIA_TYPES.exactJson]: { schema: Reference(exact.response) },
  }
}

const Ndjson = Type.String({
  description:
    'All rows between `from` and `to`, newest first: one item of the list a line, as JSON. No ' +
    'other parameters apply. With `IEEE754Compatible=true`, decimals are strings.',
})

const Csv = Type.String({
  description:
    'The same rows as CSV (RFC 4180). The first line has the names of the fields. Null is an ' +
    'empty field, text is in quotes.',
})

/** Responses of a list with pages, changes and exports (sections 4.1 and 4.2). */
export function pageResponses(list: List) {
  return {
    200: {
      description: list.response.description,
      headers: {
        ...ofData,
        // Set by http/page-headers.ts.
        Link,
        'X-Total-Count': TotalCount,
        'Content-Disposition': ContentDisposition,
        // Set by http/compression.ts.
        'Content-Encoding': ContentEncoding,
      },
      content: {
        ...jsonOf(list),
        [MEDIA_TYPES.ndjson]: { schema: Ndjson },
        [MEDIA_TYPES.csv]: { schema: Csv },
      },
    },
    ...OTHERS,
    410: error('The cursor has expired.', ofQuota),
    412: error('The data has changed since `version`.', ofQuota),
  }
}

/** Responses of a list in one array. */
export function arrayResponses(list: List) {
  return {
    200: {
      description: list.response.description,
      headers: { ...ofData, 'Content-Encoding': ContentEncoding },
      content: jsonOf(list),
    },
    ...OTHERS,
  }
}
