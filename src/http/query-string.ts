import { parse } from 'fast-querystring'
import { MAX_PARAMETER_ERRORS } from '../schemas/problem.ts'

/**
 * Parses a query, as Fastify does, up to one parameter more than a response lists errors. No route has as many, so one of
 * them is unknown or repeated, and the query is rejected all the same. A URL has up to 3,844 names: to parse and to check all of
 * them took ten times as long as the rest of the request, before the caller was known.
 */
export function parseQuery(text: string): Record<string, unknown> {
  return parse(firstParameters(text, MAX_PARAMETER_ERRORS + 1))
}

function firstParameters(text: string, count: number): string {
  let end = -1
  for (let found = 0; found < count; ) {
    const next = text.indexOf('&', end + 1)
    if (next < 0) return text
    const isEmpty = next === end + 1
    if (!isEmpty) found += 1
    end = next
  }
  return text.slice(0, end)
}
