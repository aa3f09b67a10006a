import type { TSchema } from '@sinclair/typebox'
import { Exports, MEDIA_TYPES } from '../../schemas/list.ts'
import type { lists } from '../../schemas/lists.ts'
import { problemExamples } from '../../schemas/problem.ts'
import { PageQuery } from '../../schemas/request.ts'
import document from './document.json' with { type: 'json' }

const { headers, parameters, responses } = document.components
const { token, ...others } = parameters

/** Statuses of every operation, then those of lists with pages, by the names of their responses. */
const STATUSES = {
  NotModified: 304,
  BadRequest: 400,
  Unauthorized: 401,
  NotFound: 404,
  MethodNotAllowed: 405,
  TooManyRequests: 429,
  InternalServerError: 500,
  ServiceUnavailable: 503,
}
const PAGED_STATUSES = { Gone: 410, PreconditionFailed: 412 }
const PAGED_HEADERS = ['Link', 'X-Total-Count', 'Content-Disposition']

const reference = (type: string, name: string) => ({ $ref: `#/components/${type}/${name}` })

/** Parameters, headers and responses that operations share. Generated clients get one type for each. */
export function sharedParts(maximumLimit: number) {
  const described: Record<string, object> = { ...responses }
  for (const [name, status] of Object.entries({ ...STATUSES, ...PAGED_STATUSES })) {
    if (status === 304) continue
    const schema = reference('schemas', 'Problem')
    const content = { [MEDIA_TYPES.json]: { schema, examples: problemExamples(status) } }
    described[name] = { ...described[name], content }
  }
  const query = Object.entries(PageQuery(maximumLimit).properties).map(([name, schema]) => {
    const { description, ...rest }: TSchema = schema
    return [name, { schema: rest, in: 'query', name, required: false, description }]
  })
  return {
    parameters: { token, ...Object.fromEntries(query), ...others } as Record<
      string,
      { in: string }
    >,
    headers,
    responses: described,
  }
}

/** Describes the parameters and responses of a list (section 7). @param examples of 200, by media type */
export function describeList(
  { response: { $id, description }, paged }: (typeof lists)[number],
  { parameters }: ReturnType<typeof sharedParts>,
  examples: Record<string, object>,
) {
  const shown = Object.entries(parameters).filter(([, { in: place }]) => paged || place !== 'query')
  const types: Record<string, object> = {
    [MEDIA_TYPES.json]: reference('schemas', String($id)),
    [MEDIA_TYPES.exactJson]: reference('schemas', `Exact${$id}`),
    ...(paged ? { [MEDIA_TYPES.ndjson]: Exports.ndjson, [MEDIA_TYPES.csv]: Exports.csv } : {}),
  }
  const content = Object.entries(types).map(([type, schema]) => {
    return [type, { schema, examples: examples[type] }]
  })
  const more = [...(paged ? PAGED_HEADERS : []), 'Content-Encoding']
  const statuses = Object.entries({ ...STATUSES, ...(paged ? PAGED_STATUSES : {}) })
  return {
    parameters: shown.map(([name]) => reference('parameters', name)),
    responses: {
      200: {
        description,
        headers: {
          ...responses.NotModified.headers,
          ...Object.fromEntries(more.map((name) => [name, reference('headers', name)])),
        },
        content: Object.fromEntries(content),
      },
      ...Object.fromEntries(
        statuses.map(([name, status]) => [status, reference('responses', name)]),
      ),
    },
  }
}
