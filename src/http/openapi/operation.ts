import type { TObject } from '@sinclair/typebox'
import {
  ConnectionParams,
  Exports,
  listParameters,
  MEDIA_TYPES,
  querySchema,
} from '../../schemas/list.ts'
import type { lists } from '../../schemas/lists.ts'
import { problemExamples } from '../../schemas/problem.ts'
import described from './headers.json' with { type: 'json' }

type HeaderName = keyof typeof described.headers

const QUOTA: HeaderName[] = ['RateLimit', 'RateLimit-Policy']
const STATE: HeaderName[] = [
  ...(['ETag', 'Data-Version', 'Data-Refreshed', 'Last-Modified'] as const),
  ...(['Cache-Control', 'Vary'] as const),
  ...QUOTA,
]

const PAGED: HeaderName[] = ['Link', 'X-Total-Count', 'Content-Disposition']

const reference = (type: string, name = '') => ({ $ref: `#/components/${type}/${name}` })

function headers(...names: HeaderName[]) {
  const all: HeaderName[] = ['X-Request-ID', 'X-Client-Trace-ID', ...names]
  return Object.fromEntries(all.map((name) => [name, reference('headers', name)]))
}

function problem(status: number, description: string, ...names: HeaderName[]) {
  const json = { schema: reference('schemas', 'Problem'), examples: problemExamples(status) }
  return {
    description,
    headers: headers('Cache-Control', ...names),
    content: { [MEDIA_TYPES.json]: json },
  }
}

const badRequest = problem(
  400,
  'The parameters are not valid, or the request cannot be read.',
  ...[...QUOTA, 'Content-Encoding' as const],
)

/** Responses that every operation has, by the names of their statuses. */
const responses = {
  NotModified: {
    description: 'The connection has not changed since the response in `If-None-Match`.',
    headers: headers(...STATE),
  },
  BadRequest: {
    ...badRequest,
    // It is compressed, and so has Vary, only if it lists many errors.
    headers: { ...badRequest.headers, Vary: { ...described.headers.Vary, required: false } },
  },
  Unauthorized: problem(401, 'The app token is missing or not valid.', 'WWW-Authenticate'),
  NotFound: problem(404, 'The calling app has no connection with this token.', ...QUOTA),
  MethodNotAllowed: problem(405, 'The method is neither `GET` nor `HEAD`.', 'Allow'),
  TooManyRequests: problem(429, 'The app has used up its quota.', ...QUOTA, 'Retry-After'),
  InternalServerError: problem(500, 'The service failed.'),
  ServiceUnavailable: problem(503, 'The service is overloaded or has no database.', 'Retry-After'),
}
const STATUSES = [304, 400, 401, 404, 405, 429, 500, 503]
const everyStatus = Object.fromEntries(
  Object.keys(responses).map((name, index) => [STATUSES[index], reference('responses', name)]),
)

function parametersOf(place: string, { properties, required: names = [] }: TObject) {
  return Object.entries(properties).map(([name, { description, ...schema }]) => {
    return { schema, in: place, name, required: names.includes(name), description }
  })
}

/** Parameters, headers and responses that operations share. Generated clients get one type for each. */
export function sharedParts(maximumLimit: number) {
  const parameters = [
    ...parametersOf('path', ConnectionParams),
    ...parametersOf('query', querySchema(listParameters(maximumLimit))),
  ]
  return {
    parameters: {
      ...Object.fromEntries(parameters.map((parameter) => [parameter.name, parameter])),
      ...described.parameters,
    },
    headers: described.headers,
    responses,
  }
}

/**
 * Describes the parameters and responses of a list. All lists share every status but 200, 410 and 412 (section 7,
 * contract 19).
 * @param examples of 200, by media type
 */
export function describeList(
  { response: { $id, description }, paged }: (typeof lists)[number],
  { parameters }: ReturnType<typeof sharedParts>,
  examples: Record<string, object>,
) {
  const shown = Object.values(parameters).filter((parameter) => paged || parameter.in !== 'query')
  const types: Record<string, object> = {
    [MEDIA_TYPES.json]: reference('schemas', $id),
    [MEDIA_TYPES.exactJson]: reference('schemas', `Exact${$id}`),
    ...(paged ? { [MEDIA_TYPES.ndjson]: Exports.ndjson, [MEDIA_TYPES.csv]: Exports.csv } : {}),
  }
  const content = Object.entries(types).map(([type, schema]) => [
    type,
    { schema, examples: examples[type] },
  ])
  return {
    parameters: shown.map(({ name }) => reference('parameters', name)),
    responses: {
      200: {
        description,
        headers: headers(...STATE, ...(paged ? PAGED : []), 'Content-Encoding'),
        content: Object.fromEntries(content),
      },
      ...everyStatus,
      ...(paged
        ? {
            410: problem(410, 'The cursor has expired.', ...QUOTA),
            412: problem(412, 'The data has changed since `version`.', ...QUOTA),
          }
        : {}),
    },
  }
}
