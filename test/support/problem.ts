import type { Test } from 'tap'
import type { Problem } from '../../src/schemas/problem.ts'
import { type ProblemCode, ProblemCodes, titleOf } from '../../src/schemas/problem.ts'

interface Answered {
  status: number
  headers: { get(name: string): string | null | undefined }
  text: string
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Checks the common error body of a response (contract 16), and returns it. */
export function isProblem(
  t: Test,
  response: Answered,
  code: ProblemCode,
  message: string = code,
): Problem {
  const problem = JSON.parse(response.text) as Problem
  const { status } = ProblemCodes[code]
  const { detail, requestId, errors, ...fixed } = problem
  t.strictSame(fixed, { status, code, title: titleOf(code) }, message)
  t.equal(response.status, status, `${message}: the status is the body's`)
  t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal(response.headers.get('cache-control'), 'no-store', 'errors are not cached')
  t.match(requestId, UUID)
  t.equal(response.headers.get('x-request-id'), requestId)
  t.ok(detail.length > 0)
  t.equal(errors !== undefined, code === 'invalid_request', `${message}: errors`)
  return problem
}
