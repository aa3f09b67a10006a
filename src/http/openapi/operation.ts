import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import type { FastifySchema } from 'fastify'
import { exactDecimals, Reference } from '../../schemas/fields.ts'
import { RequestHeaders, ResponseHeaders } from '../../schemas/headers.ts'
import { ConnectionParams } from '../../schemas/list.ts'
import { Problem, problemExamples } from '../../schemas/problem.ts'
import { CSV, EXACT_JSON, JSON_TYPE, NDJSON } from '../representation.ts'

interface Operation extends FastifySchema {
  operationId: string
  querystring: TObject
  response: { 200: TSchema }
}

const EXPORTS = {
  [NDJSON]: {
    schema: Type.String({
      title: 'Export as NDJSON',
      description:
        'All rows between `from` and `to`, newest first: one item of the list a line, as JSON. No other ' +
        'parameters apply. With `IEEE754Compatible=true`, decimals are strings.',
    }),
  },
  [CSV]: {
    schema: Type.String({
      title: 'Export as CSV',
      description:
        'The same rows as CSV (RFC 4180). The first line has the names of the fields. Null is an empty ' +
        'field, text is in quotes.',
    }),
  },
}

type HeaderName = keyof typeof ResponseHeaders

const QUOTA: HeaderName[] = ['RateLimit', 'RateLimit-Policy']
const STATE: HeaderName[] = [
  'ETag',
  'Data-Version',
  'Data-Refreshed',
  'Last-Modified',
  'Cache-Control',
  'Vary',
  ...QUOTA,
]

/**
 * Documents an endpoint: adds its headers, media types and errors. All endpoints share every status but 200
 * (section 7, contract 19). Validation needs only the schema of the route.
 */
export function documentOperation(schema: FastifySchema): FastifySchema {
  if (schema.hide) return schema
  const { querystring, response: responses, ...about } = schema as Operation
  const { 200: response } = responses
  const isList = 'page' in querystring.properties
  const listHeaders: HeaderName[] = isList ? ['Link', 'X-Total-Count', 'Content-Disposition'] : []
  return {
    ...about,
    params: ConnectionParams,
    querystring,
    headers: RequestHeaders,
    response: {
      200: {
        description: response.description,
        headers: headers(...STATE, ...listHeaders, 'Content-Encoding'),
        content: {
          [JSON_TYPE]: { schema: Reference(response) },
          [EXACT_JSON]: { schema: Reference(exactDecimals(response)) },
          ...(isList ? EXPORTS : {}),
        },
      },
      304: {
        description: 'The connection has not changed since the response in `If-None-Match`.',
        headers: headers(...STATE),
        type: 'null',
      },
      400: problem(400, 'The parameters are not valid, or the request cannot be read.', [
        ...QUOTA,
        'Vary',
        'Content-Encoding',
      ]),
      401: problem(401, 'The app token is missing or not valid.', ['WWW-Authenticate']),
      404: problem(404, 'The calling app has no connection with this token.', QUOTA),
      ...('since' in querystring.properties
        ? {
            410: problem(410, 'The cursor has expired.', QUOTA),
            412: problem(412, 'The data has changed since `version`.', QUOTA),
          }
        : {}),
      405: problem(405, 'The method is neither `GET` nor `HEAD`.', ['Allow']),
      429: problem(429, 'The app has used up its quota.', [...QUOTA, 'Retry-After']),
      500: problem(500, 'The service failed.', []),
      503: problem(503, 'The service is overloaded or has no database.', ['Retry-After']),
    },
  }
}

function headers(...names: HeaderName[]) {
  const all: HeaderName[] = ['X-Request-ID', 'X-Client-Trace-ID', ...names]
  return Object.fromEntries(all.map((name) => [name, ResponseHeaders[name]]))
}

function problem(status: number, description: string, names: HeaderName[]) {
  const json = { schema: Reference(Problem), examples: problemExamples(status) }
  return {
    description,
    headers: headers('Cache-Control', ...names),
    content: { [JSON_TYPE]: json },
  }
}
