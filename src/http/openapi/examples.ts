import { readFile } from 'node:fs/promises'
import { LARGEST_LIMIT } from '../../schemas/list.ts'
import {
  type ParameterError,
  type Problem,
  type ProblemCode,
  ProblemCodes,
  routeNotFoundDetail,
  titleOf,
} from '../../schemas/problem.ts'
import { pageRules, summaryOf, unknownDetail } from '../parameter-errors.ts'

declare global {
  /** Parts of ECMAScript that Node 24 has and TypeScript 6 does not declare. */
  interface JSON {
    parse(text: string, reviver: Reviver): unknown
    rawJSON(text: string): unknown
  }
}
/** `source` is the text of a primitive value; undefined for objects and arrays. */
type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/** Parses JSON without rounding: JSON.stringify() writes each number with its original digits. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? JSON.rawJSON(source) : value,
  )
}

/** Examples of 200 by operation and media type: responses with the sample data. `npm run docs:renew` writes them. */
export const EXAMPLES = new URL('examples.json', import.meta.url)
export type Examples = Record<
  string,
  Record<string, { sampleData: { summary: string; value: unknown } }>
>

export async function readExamples(): Promise<Examples> {
  return parseExactly(await readFile(EXAMPLES, 'utf8')) as Examples
}

const REQUEST_ID = '6a0f2d94-71c3-4be8-9f25-d3b8e4c7a106'

/** Query of the example of `invalid_request`. */
export const INVALID_QUERY = 'form=2025-01-01&to=2025-02-30'

const rules = pageRules(LARGEST_LIMIT)

const errors: ParameterError[] = [
  {
    parameter: 'form',
    code: 'unknown_parameter',
    detail: unknownDetail('form', Object.keys(rules)),
  },
  {
    parameter: 'to',
    code: 'invalid_format',
    detail: rules.to.text,
  },
]

/** Example of the error of a path that no operation has. */
export function routeNotFoundExample(paths: readonly string[]): Problem {
  const code = 'route_not_found'
  const { status } = ProblemCodes[code]
  const detail = routeNotFoundDetail(paths)
  return { status, code, title: titleOf(code), detail, requestId: REQUEST_ID }
}

/** Examples of the errors of a status, without `route_not_found`, which no operation returns. */
export function problemExamples(status: number) {
  const codes = Object.keys(ProblemCodes) as ProblemCode[]
  const shown = codes.filter(
    (code) => ProblemCodes[code].status === status && code !== 'route_not_found',
  )
  return Object.fromEntries(
    shown.map((code) => {
      const { detail } = ProblemCodes[code]
      const problem = { status, code, title: titleOf(code), detail, requestId: REQUEST_ID }
      const value =
        code === 'invalid_request' ? { ...problem, detail: summaryOf(errors), errors } : problem
      return [code, { summary: code, value }]
    }),
  )
}
