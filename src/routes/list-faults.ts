import type { FastifySchemaValidationError } from 'fastify'
import { type ListQuery, MAXIMUM_PAGE } from '../schemas/list-query.ts'
import type { ParameterFault, ParameterFaultCode } from '../schemas/parameter-fault.ts'

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
): ParameterFault[] {
  const faults = found.map((fault) => formFault(fault, rules))
  return [...new Map(faults.map((fault) => [fault.parameter, fault])).values()]
}

function formFault(found: FastifySchemaValidationError, rules: ParameterRules): ParameterFault {
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
export function listFaults(
  query: ListQuery,
  found: FastifySchemaValidationError[],
  maximumLimit: number,
): ParameterFault[] {
  const rules = listRules(maximumLimit)
  const faults = formFaults(found, rules)
  const sound = (name: keyof ListQuery) => {
    const value = faults.some(({ parameter }) => parameter === name) ? undefined : query[name]
    return value === undefined ? Number.NaN : Number(value)
  }
  const report = (parameter: keyof ListQuery, code: ParameterFaultCode, detail?: string) =>
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
