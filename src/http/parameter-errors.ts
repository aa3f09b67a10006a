import type { FastifySchemaValidationError } from 'fastify'
import { closestMatch } from 'leven'
import { MAXIMUM_PAGE } from '../schemas/list.ts'
import type { ParameterError, ParameterErrorCode } from '../schemas/problem.ts'
import type { PageQuery, QueryPurpose } from '../schemas/request.ts'

/** Rules of a parameter besides those of its schema. */
interface ParameterRule {
  /** The rule in words, for an error of the value. */
  text: string
  /** Smallest and largest number. The schema allows any digits. */
  range?: readonly [minimum: number, maximum: number]
  /** Purposes that the parameter does not apply to. */
  excludedFrom: readonly QueryPurpose[]
}

/** Parameters by their names, in the order in which errors are listed. */
export type ParameterRules = Partial<Record<keyof PageQuery, ParameterRule>>

/** The rules of PageQuery(). */
export function pageRules(maximumLimit: number) {
  return {
    from: {
      text: 'from must be a day that exists, as YYYY-MM-DD.',
      excludedFrom: ['changes'],
    },
    to: {
      text: 'to must be a day that exists, as YYYY-MM-DD.',
      excludedFrom: ['changes'],
    },
    limit: {
      text: `limit must be a whole number from 1 to ${maximumLimit}, in digits.`,
      range: [1, maximumLimit],
      excludedFrom: ['export'],
    },
    page: {
      text: `page must be a whole number from 0 to ${MAXIMUM_PAGE}, in digits.`,
      range: [0, MAXIMUM_PAGE],
      excludedFrom: ['changes', 'export'],
    },
    since: {
      text: 'since must be start, or a nextCursor of this list and connection.',
      excludedFrom: ['export'],
    },
    version: {
      text: 'version must be the Data-Version of an earlier response.',
      excludedFrom: ['changes', 'export'],
    },
  } as const satisfies Record<keyof PageQuery, ParameterRule>
}

/** The error of the API for each keyword of JSON Schema that a query can break. */
const CODES: Record<string, ParameterErrorCode> = {
  additionalProperties: 'unknown_parameter',
  // A repeated parameter is an array instead of a string.
  type: 'repeated_parameter',
  pattern: 'invalid_format',
  format: 'invalid_format',
}

interface CheckedQuery {
  /** As the client sent it: the value of a repeated parameter is an array. */
  query: PageQuery
  /** What the schema of the route found. */
  schemaErrors: FastifySchemaValidationError[]
  purpose: QueryPurpose
  /** False if `since` is no cursor of this list and connection. */
  hasValidCursor: boolean
}

/** Makes the check of a query by the rules of its route. It lists every error at once. */
export function parameterCheck(rules: ParameterRules): (checked: CheckedQuery) => ParameterError[] {
  // For each request, the entries would be a thirtieth of all that it allocates.
  const entries = Object.entries(rules)
  return (checked) => parameterErrors(rules, entries, checked)
}

function parameterErrors(
  rules: ParameterRules,
  entries: [string, ParameterRule][],
  { query, schemaErrors, purpose, hasValidCursor }: CheckedQuery,
): ParameterError[] {
  const errors: ParameterError[] = []
  const wrong = new Set<string>()
  const add = (error: ParameterError) => {
    // One error of a value is enough.
    if (wrong.has(error.parameter)) return
    wrong.add(error.parameter)
    errors.push(error)
  }
  for (const error of schemaErrors) add(ofSchema(error, rules))
  for (const [name, { range, text }] of entries) {
    const value = Number(query[name as keyof PageQuery])
    if (range !== undefined && (value < range[0] || value > range[1]))
      add({ parameter: name, code: 'out_of_range', detail: text })
  }
  const { from, to } = query
  // Days in this format can be compared as text.
  if (from !== undefined && to !== undefined && from > to && !wrong.has('to'))
    add({ parameter: 'from', code: 'invalid_range', detail: 'from must not be after to.' })
  const excluded = excludedErrors(entries, query, purpose)
  if (purpose === 'export') {
    const isExcluded = (name: string) => excluded.some(({ parameter }) => parameter === name)
    return [...excluded, ...errors.filter(({ parameter }) => !isExcluded(parameter))]
  }
  errors.push(...excluded)
  if (purpose === 'changes' && rules.since && !hasValidCursor)
    errors.push({ parameter: 'since', code: 'invalid_cursor', detail: rules.since.text })
  return errors
}

function ofSchema(error: FastifySchemaValidationError, rules: ParameterRules): ParameterError {
  const { keyword, instancePath, params } = error
  const code = CODES[keyword] ?? 'invalid_format'
  if (code === 'unknown_parameter') {
    const parameter = String(params.additionalProperty)
    return { parameter, code, detail: unknownDetail(parameter, Object.keys(rules)) }
  }
  const parameter = instancePath.slice(1)
  if (code === 'repeated_parameter')
    return { parameter, code, detail: `${parameter} may be given only once.` }
  const rule = rules[parameter as keyof PageQuery]
  return { parameter, code, detail: rule?.text ?? '' }
}

/** Longest name of an unknown parameter that a text repeats, and that gets a suggestion. */
const MAX_NAME = 100

/** The rule that an unknown parameter breaks, in words. @param names of the parameters that exist */
export function unknownDetail(parameter: string, names: string[]): string {
  if (names.length === 0) return 'This operation has no query parameters.'
  const closest = closestName(parameter, names)
  const suggestion = closest === undefined ? '' : ` Did you mean ${closest}?`
  return `There is no such parameter.${suggestion} The parameters are ${names.join(', ')}.`
}

/** At least one character must be right: each name of two letters is two changes away from an empty one. */
function closestName(parameter: string, names: string[]): string | undefined {
  if (parameter.length < 2 || parameter.length > MAX_NAME) return undefined
  return closestMatch(parameter, names, { maxDistance: Math.min(2, parameter.length - 1) })
}

/** Sums up errors of parameters, because many programs show nothing else. @param listed number of those in `errors` */
export function summaryOf(errors: readonly ParameterError[], listed = errors.length): string {
  const [first] = errors
  if (first === undefined) return ''
  const { code, parameter, detail } = first
  const isNamed = code === 'unknown_parameter' && parameter !== '' && parameter.length <= MAX_NAME
  const summary = isNamed ? `${parameter}: ${detail}` : detail
  if (errors.length === 1) return summary
  if (listed < errors.length) return `${summary} (and others: errors has the first ${listed})`
  return `${summary} (and ${errors.length - 1} more in errors)`
}

const PLACES: Record<QueryPurpose, string> = {
  page: 'in a page',
  changes: 'together with since',
  export: 'in an export',
}

function excludedErrors(
  entries: [string, ParameterRule][],
  query: PageQuery,
  purpose: QueryPurpose,
): ParameterError[] {
  const excluded = entries.filter(
    ([name, { excludedFrom }]) => excludedFrom.includes(purpose) && Object.hasOwn(query, name),
  )
  return excluded.map(([parameter]) => {
    const detail = `${parameter} cannot be used ${PLACES[purpose]}.`
    return { parameter, code: 'excluded_parameter', detail }
  })
}
