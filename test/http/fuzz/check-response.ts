import type { readContract } from '../../openapi/contract.ts'
import type { Response, Result } from './exchange.ts'
import type { Request } from './requests.ts'

type Contract = ReturnType<typeof readContract>

/** Documented statuses that no request may get here: no quota is set, and nothing fails. */
const FAILURES = [429, 500, 503]

/** Returns the error of a result, or undefined if it is as documented. */
export function errorOf(contract: Contract, request: Request, result: Result): string | undefined {
  if (result === 'timeout') return 'no end within the limit'
  // The service may close the connection of an incomplete request.
  if (result.length === 0) return request.malformed ? undefined : 'closed without a response'
  const [first] = result
  if (request.valid && first && ![200, 304].includes(first.status)) {
    return `a valid request got ${first.status} ${first.text}`
  }
  for (const response of result) {
    const error = errorOfResponse(contract, request, response)
    if (error) return error
  }
  return undefined
}

function errorOfResponse(
  contract: Contract,
  { operationId, method }: Request,
  response: Response,
): string | undefined {
  if (FAILURES.includes(response.status)) return `${response.status} ${response.text}`
  const ids = operationId === undefined ? [...contract.responses.keys()] : [operationId]
  const errors = ids.map((id) => errorForOperation(contract, id, method, response))
  return errors.includes(undefined) ? undefined : errors.join('; or: ')
}

function errorForOperation(
  contract: Contract,
  operationId: string,
  method: string,
  { status, headers, text }: Response,
): string | undefined {
  const documented = contract.responses.get(operationId)?.get(status)
  if (documented === undefined) return `${operationId} has no status ${status}: ${text}`
  const headerErrors = contract.headerErrorsOf(headers, documented)
  if (headerErrors) return `headers of ${operationId} ${status}: ${headerErrors}`
  const noBody = method === 'HEAD' || documented.bodies.size === 0
  if (noBody) return text === '' ? undefined : 'a body'
  const schema = documented.bodies.get(headers.get('content-type'))
  if (schema === undefined) return `content-type ${headers.get('content-type')}`
  const body = parsed(text)
  if (body === undefined) return `not JSON: ${text.slice(0, 200)}`
  const errors = contract.errorsOf(body, schema)
  if (errors) return `body of ${operationId} ${status}: ${errors}`
  if (status === 200) return undefined
  const problem = body as { status: number; requestId: string }
  if (problem.status !== status) return `status ${status}, in the body ${problem.status}`
  if (problem.requestId !== headers.get('x-request-id')) return 'another request id in the body'
  return undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
