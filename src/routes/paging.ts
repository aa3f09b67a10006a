import type { FastifyReply, FastifyRequest, FastifySchemaValidationError } from 'fastify'
import { sendReply } from '../http/conditional-requests.ts'
import type { Database } from '../postgres/database.ts'
import type { ListFacts } from '../queries/list-page.ts'
import type { Reply } from '../queries/read-response.ts'
import { DEFAULT_LIMIT, DEFAULT_PAGE, type ListQuery, MAXIMUM_PAGE } from '../schemas/list.ts'
import type { ParameterError, ParameterErrorCode } from '../schemas/problem.ts'
import {
  connectionFacts,
  holdingFor,
  type RouteOptions,
  readOfKnownCaller,
  refuseFaults,
} from './connection-request.ts'

/**
 * What the parameters of a list must be, in words, and the names that there are. The transfer orders
 * take none.
 */
export type ParameterRules = Record<string, string>

function listRules(maximumLimit: number): ParameterRules {
  return {
    from: 'from must be a day that exists, as YYYY-MM-DD.',
    to: 'to must be a day that exists, as YYYY-MM-DD.',
    limit: `limit must be a whole number from 1 to ${maximumLimit}, in digits.`,
    page: `page must be a whole number from 0 to ${MAXIMUM_PAGE}, in digits.`,
  }
}

/** The faults that the schema finds, one for each parameter. */
export function formFaults(
  found: FastifySchemaValidationError[],
  rules: ParameterRules,
): ParameterError[] {
  const faults = found.map((fault) => formFault(fault, rules))
  return [...new Map(faults.map((fault) => [fault.parameter, fault])).values()]
}

function formFault(found: FastifySchemaValidationError, rules: ParameterRules): ParameterError {
  if (found.keyword === 'additionalProperties') {
    const parameter = String(found.params.additionalProperty)
    const names = Object.keys(rules)
    const known = names.length > 0 ? `The parameters are ${names.join(', ')}.` : 'There are none.'
    return { parameter, code: 'unknown_parameter', detail: `There is no such parameter. ${known}` }
  }
  const parameter = found.instancePath.slice(1)
  return found.keyword === 'type'
    ? { parameter, code: 'repeated_parameter', detail: `${parameter} may be given only once.` }
    : { parameter, code: 'invalid_format', detail: String(rules[parameter]) }
}

/** Every fault of a list's parameters at once: those of form, then those of well-formed values. */
function listFaults(
  query: ListQuery,
  found: FastifySchemaValidationError[],
  maximumLimit: number,
): ParameterError[] {
  const rules = listRules(maximumLimit)
  const faults = formFaults(found, rules)
  const sound = (name: keyof ListQuery) => {
    const value = faults.some(({ parameter }) => parameter === name) ? undefined : query[name]
    return value === undefined ? Number.NaN : Number(value)
  }
  const report = (parameter: keyof ListQuery, code: ParameterErrorCode, detail?: string) =>
    faults.push({ parameter, code, detail: detail ?? String(rules[parameter]) })
  const limit = sound('limit')
  const page = sound('page')
  if (limit < 1 || limit > maximumLimit) report('limit', 'out_of_range')
  if (page > MAXIMUM_PAGE) report('page', 'out_of_range')
  const { from, to } = query
  const days = faults.every(({ parameter }) => parameter !== 'from' && parameter !== 'to')
  // Days of this form compare as text.
  if (days && from !== undefined && to !== undefined && from > to)
    report('from', 'invalid_range', 'from must not be after to.')
  return faults
}

type Paging = Pick<ListFacts, 'from' | 'to' | 'limit' | 'page'>

/**
 * The Link header of a page (RFC 8288, contract 23): first, prev, next and last. `next` is absent on
 * the last page and past it. The targets are relative to the address that was asked for, so that the
 * connection's token in it is not repeated in a header, where it might be logged (contract 21).
 */
function pageLinks({ from, to, limit, page }: Paging, totalItems: number): string {
  const last = Math.max(0, Math.ceil(totalItems / limit) - 1)
  const filter = `${from ? `from=${from}&` : ''}${to ? `to=${to}&` : ''}`
  const pages = [
    ['first', 0],
    ['prev', page > 0 ? Math.min(page - 1, last) : undefined],
    ['next', page < last ? page + 1 : undefined],
    ['last', last],
  ] as const
  return pages
    .filter(([, number]) => number !== undefined)
    .map(([rel, number]) => `<?${filter}limit=${limit}&page=${number}>; rel="${rel}"`)
    .join(', ')
}

/**
 * Handles a request for one of the two lists: its parameters, one read, the answer with its links.
 * @param form names the form of the answer, see routes/validators.ts
 */
export function listHandler(
  options: RouteOptions,
  read: (db: Database, facts: ListFacts) => Promise<Reply>,
  form: string,
) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const query = request.query as ListQuery
    const found = request.validationError?.validation ?? []
    await refuseFaults(options, reply, listFaults(query, found, options.maximumLimit))
    const { from, to, limit = DEFAULT_LIMIT, page = DEFAULT_PAGE } = query
    const holding = holdingFor(options.db, reply, Number(limit))
    const { facts, validators } = connectionFacts(request, form, holding)
    const list = { ...facts, from, to, limit: Number(limit), page: Number(page) }
    const answer = await readOfKnownCaller(options, reply, read(options.db, list))
    if (answer.body) reply.header('link', pageLinks(list, answer.totalItems))
    return sendReply(reply, validators, answer)
  }
}
