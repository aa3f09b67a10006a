import { decodedBody, headerOf, type Recorded } from './exchange.ts'
import type { ServiceRequest } from './requests.ts'

interface Difference {
  count: number
  /** The first requests with this difference, and what both responses have there. */
  examples: string[]
}

const MAX_EXAMPLES = 2
const MAX_SHOWN = 400

/** Differences of two services by their kind: a status, a header, the order of headers, or the body. */
export class Differences {
  readonly kinds = new Map<string, Difference>()

  add(sent: ServiceRequest, baseline: Recorded, current: Recorded): void {
    for (const [kind, before, after] of differencesOf(sent, baseline, current)) {
      const found = this.kinds.get(kind) ?? { count: 0, examples: [] }
      found.count += 1
      if (found.examples.length < MAX_EXAMPLES)
        found.examples.push(`${describe(sent)}\n    - ${before}\n    + ${after}`)
      this.kinds.set(kind, found)
    }
  }

  toString(): string {
    const sections = [...this.kinds].map(
      ([kind, { count, examples }]) => `${kind}: ${count}\n  ${examples.join('\n  ')}`,
    )
    return sections.join('\n')
  }
}

type Found = [kind: string, before: string, after: string]

function differencesOf(sent: ServiceRequest, baseline: Recorded, current: Recorded): Found[] {
  const place = placeOf(sent)
  if (baseline.status !== current.status) {
    const kind = `${place}: status ${baseline.status} → ${current.status}`
    return [[kind, shown(baseline.body), shown(current.body)]]
  }
  const found: Found[] = []
  const before = stableHeaders(baseline)
  const after = stableHeaders(current)
  const of = `${place} ${baseline.status}`
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [String(before.get(name)), String(after.get(name))]
    if (was !== is) found.push([`${of}: header ${name}`, was, is])
  }
  const [orderBefore, orderAfter] = [[...before.keys()].join(', '), [...after.keys()].join(', ')]
  if (found.length === 0 && orderBefore !== orderAfter)
    found.push([`${of}: order of headers`, orderBefore, orderAfter])
  const [bodyBefore, bodyAfter] = [stableBody(baseline), stableBody(current)]
  if (!bodyBefore.equals(bodyAfter))
    found.push([`${of}: body`, shown(bodyBefore), shown(bodyAfter)])
  return found
}

/** Each response has another time and another request id. Both services count the same quota at other times. */
function stableHeaders(response: Recorded): Map<string, string> {
  const stable = new Map<string, string>()
  // The request id of a body changes its compressed length.
  const hasOtherLength = isError(response) && headerOf(response, 'content-encoding') !== undefined
  for (const [name, value] of response.headers) {
    if (name === 'content-length' && hasOtherLength) continue
    const others = stable.get(name)
    const text = stableValue(name, value)
    stable.set(name, others === undefined ? text : `${others}, ${text}`)
  }
  return stable
}

function stableValue(name: string, value: string): string {
  if (name === 'date') return 'a time'
  if (name === 'x-request-id')
    return value.replace(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/, 'an id')
  if (name === 'ratelimit') return value.replace(/t=\d+/, 't=some')
  if (name === 'retry-after') return value.replace(/^[1-9]\d*$/, 'some')
  return value
}

/** The body as it was sent; that of an error without its request id, and without its compression. */
function stableBody(response: Recorded): Buffer {
  if (!isError(response)) return response.body
  const text = decodedBody(response).toString('latin1')
  return Buffer.from(text.replace(/"requestId":"[^"]*"/, '"requestId":"an id"'), 'latin1')
}

const isError = ({ status }: Recorded) => Number(status) >= 400

/** Groups requests by list, not by connection. */
function placeOf({ method, target }: ServiceRequest): string {
  const [path = ''] = target.split('?')
  const list = /^\/api\/v1\/queries\/connections\/[^/]+\/(.*)/.exec(path)?.[1]
  return `${method} ${list ?? path}`
}

function describe({ method, target, headers }: ServiceRequest): string {
  const others: string[] = []
  for (let at = 0; at < headers.length; at += 2) others.push(`${headers[at]}: ${headers[at + 1]}`)
  return `${method} ${shorten(target)} (${others.join('; ')})`
}

const shown = (body: Buffer) => shorten(JSON.stringify(body.toString()))

const shorten = (text: string) => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)
