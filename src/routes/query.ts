import type { FastifyRequest, FastifySchemaValidationError } from 'fastify'
import type { Cursor } from '../queries/read.ts'
import {
  DEFAULT_LIMIT,
  DEFAULT_PAGE,
  EXPORTS,
  type Format,
  type ListParameters,
  type ListQuery,
} from '../schemas/list.ts'
import type { ParameterError } from '../schemas/problem.ts'

/** The parameters of a request. With errors, the list must not be read. */
interface ParsedQuery extends Omit<ListQuery, 'limit' | 'page'> {
  limit: number
  page: number
  cursor?: Cursor | undefined
  errors: ParameterError[]
}

/** Parameters that an export or a list of changes does not have. */
const NOT_IN_EXPORTS = { names: ['limit', 'page', 'since', 'version'], place: 'in an export' }
const NOT_WITH_SINCE = { names: ['from', 'to', 'page', 'version'], place: 'together with since' }

/** Parses the query of a list. @param parseCursor returns undefined for a cursor of another list or connection */
export function parseQuery(
  { query, validationError }: FastifyRequest,
  parameters: ListParameters,
  format: Format,
  parseCursor: (text: string) => Cursor | undefined,
): ParsedQuery {
  const { from, to, limit, page, since, version } = query as ListQuery
  const errors = validationError ? schemaErrors(validationError.validation, parameters) : []
  const add = (parameter: string, code: ParameterError['code'], detail = '') =>
    errors.push({ parameter, code, detail })
  const isValid = (name: string) => errors.every(({ parameter }) => parameter !== name)
  for (const [name, { range, rule }] of Object.entries(parameters)) {
    const value = Number((query as ListQuery)[name as keyof ListQuery])
    if (range && (value < range[0] || value > range[1]) && isValid(name))
      add(name, 'out_of_range', rule)
  }
  // Days in this format can be compared as text.
  if (from !== undefined && to !== undefined && from > to && isValid('from') && isValid('to'))
    add('from', 'invalid_range', 'from must not be after to.')
  const parsed = {
    ...{ from, to, since, version, errors },
    limit: Number(limit ?? DEFAULT_LIMIT),
    page: Number(page ?? DEFAULT_PAGE),
  }
  if (EXPORTS.has(format)) {
    const others = errors.filter(({ parameter }) => !NOT_IN_EXPORTS.names.includes(parameter))
    return { ...parsed, errors: [...excludedErrors(query, NOT_IN_EXPORTS), ...others] }
  }
  // A repeated parameter is an array.
  if (typeof since !== 'string') return parsed
  errors.push(...excludedErrors(query, NOT_WITH_SINCE))
  const cursor = parseCursor(since)
  if (cursor === undefined) add('since', 'invalid_cursor', parameters.since?.rule)
  return { ...parsed, cursor }
}

const excludedErrors = (query: unknown, { names, place }: typeof NOT_IN_EXPORTS) =>
  names
    .filter((name) => Object.hasOwn(query as object, name))
    .map((parameter): ParameterError => {
      const detail = `${parameter} cannot be used ${place}.`
      return { parameter, code: 'excluded_parameter', detail }
    })

/** Lists the errors of the schema validation, one per parameter. A query may have 3,000 of them. */
function schemaErrors(
  found: FastifySchemaValidationError[],
  parameters: ListParameters,
): ParameterError[] {
  const names = Object.keys(parameters)
  const known = names.length > 0 ? `The parameters are ${names.join(', ')}.` : 'There are none.'
  const errors = new Map<string, ParameterError>()
  const add = (parameter: string, code: ParameterError['code'], detail: string) =>
    errors.set(parameter, { parameter, code, detail })
  for (const { keyword, params, instancePath } of found) {
    const name = instancePath.slice(1)
    if (keyword === 'additionalProperties')
      add(
        String(params.additionalProperty),
        'unknown_parameter',
        `There is no such parameter. ${known}`,
      )
    else if (keyword === 'type') add(name, 'repeated_parameter', `${name} may be given only once.`)
    else add(name, 'invalid_format', parameters[name]?.rule ?? '')
  }
  return [...errors.values()]
}
