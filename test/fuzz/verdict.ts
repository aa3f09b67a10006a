import type { readContract } from '../openapi/contract.ts'
import type { Outcome, Reply } from './exchange.ts'
import type { Request } from './requests.ts'

type Contract = ReturnType<typeof readContract>

/** All that may come back; a 500 is never right, and nothing here is overloaded. */
const STATUSES = [200, 304, 400, 401, 404, 405]

/** What is wrong with the answer to a request; undefined where it is as promised. */
export function faultOf(
  contract: Contract,
  request: Request,
  outcome: Outcome,
): string | undefined {
  if (outcome === 'hangs') return 'no end within the limit'
  // Bytes that stop in the middle of a request may be let go without a word.
  if (outcome.length === 0) return request.broken ? undefined : 'closed without an answer'
  const [first] = outcome
  if (request.sound && first && ![200, 304].includes(first.status)) {
    return `a sound request got ${first.status} ${first.text}`
  }
  for (const reply of outcome) {
    const fault = faultOfReply(contract, request, reply)
    if (fault) return fault
  }
  return undefined
}

function faultOfReply(contract: Contract, request: Request, reply: Reply): string | undefined {
  const { status, headers, text } = reply
  if (!STATUSES.includes(status)) return `${status} ${text}`
  if (!headers.has('x-request-id')) return 'no X-Request-ID'
  if (request.method === 'HEAD' || status === 304) return text === '' ? undefined : 'a body'
  if (headers.get('content-type') !== 'application/json; charset=utf-8') {
    return `content-type ${headers.get('content-type')}`
  }
  const body = parsed(text)
  if (body === undefined) return `not JSON: ${text.slice(0, 200)}`
  if (status === 200) {
    // A changed byte may have led to another operation.
    const promised = contract.responses.get(request.operationId)?.get(200)?.body
    return request.broken ? undefined : contract.faultsOf(body, promised ?? {}) || undefined
  }
  const faults = contract.faultsOf(body, { $ref: '#/components/schemas/Problem' })
  if (faults) return `not the one error body: ${faults}`
  const problem = body as { status: number; requestId: string }
  if (problem.status !== status) return `status ${status}, in the body ${problem.status}`
  if (problem.requestId !== headers.get('x-request-id')) return 'another request in the body'
  return undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
