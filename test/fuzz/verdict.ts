import type { readContract } from '../openapi/contract.ts'
import type { Outcome, Reply } from './exchange.ts'
import type { Request } from './requests.ts'

type Contract = ReturnType<typeof readContract>

/** Documented, and yet never right here, where nothing fails, is too much or has a quota. */
const FAILURES = [429, 500, 503]

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
  const { operationId, method } = request
  if (FAILURES.includes(reply.status)) return `${reply.status} ${reply.text}`
  const ids = operationId === undefined ? [...contract.responses.keys()] : [operationId]
  const faults = ids.map((id) => faultAsOf(contract, id, method, reply))
  return faults.includes(undefined) ? undefined : faults.join('; or else: ')
}

/** What is wrong with a reply as one of an operation, according to what the document says of that. */
function faultAsOf(
  contract: Contract,
  operationId: string,
  method: string,
  { status, headers, text }: Reply,
): string | undefined {
  const promised = contract.responses.get(operationId)?.get(status)
  if (promised === undefined) return `${operationId} has no status ${status}: ${text}`
  const faults = contract.headerFaultsOf(headers, promised)
  if (faults) return `headers of ${operationId} ${status}: ${faults}`
  if (method === 'HEAD' || promised.body === undefined) return text === '' ? undefined : 'a body'
  if (headers.get('content-type') !== 'application/json; charset=utf-8') {
    return `content-type ${headers.get('content-type')}`
  }
  const body = parsed(text)
  if (body === undefined) return `not JSON: ${text.slice(0, 200)}`
  const wrong = contract.faultsOf(body, promised.body)
  if (wrong) return `body of ${operationId} ${status}: ${wrong}`
  if (status === 200) return undefined
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
