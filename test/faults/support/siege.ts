import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Problem } from '../../../src/schemas/problem.ts'
import { digestOf, type Known } from './truth.ts'

/** What became of the requests that were sent during a fault. */
export interface Counts {
  sent: number
  /** Answered with the truth, to the byte. */
  ok: number
  /** Answered 503, with Retry-After and the one error body. */
  refused: number
  /** Answered with anything else. */
  wrong: string[]
  /** Not answered within the limit. */
  hanging: number
  /** Connections that broke, before the answer or in its middle. */
  lost: string[]
  slowestMs: number
  /** What those that were answered and those that were refused took together. */
  okMs: number
  refusedMs: number
}

export interface SiegeOptions {
  url: string
  known: Known[]
  clients: number
  /** Within this time, every request is answered. */
  limitMs: number
  pauseMs?: number
}

/**
 * Clients that ask one known thing after the other and hold each answer against the truth.
 * @returns what ends them, as the end of the test does, and tells what they saw
 */
export function besiege(t: Test, options: SiegeOptions): () => Promise<Counts> {
  const { known, clients, pauseMs = 10 } = options
  const counts: Counts = {
    sent: 0,
    ok: 0,
    refused: 0,
    wrong: [],
    hanging: 0,
    lost: [],
    slowestMs: 0,
    okMs: 0,
    refusedMs: 0,
  }
  let ended = false
  const client = async (number: number) => {
    for (let turn = number; !ended; turn += 1) {
      await ask(options, known[turn % known.length] as Known, counts)
      await sleep(pauseMs)
    }
  }
  const all = Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  const end = async () => {
    ended = true
    await all
    return counts
  }
  t.teardown(end)
  return end
}

async function ask({ url, limitMs }: SiegeOptions, known: Known, counts: Counts): Promise<void> {
  const start = performance.now()
  counts.sent += 1
  try {
    const headers: Record<string, string> = { authorization: `Bearer ${known.token}` }
    // Asks for the version first, and then for the page: two reads.
    if (counts.sent % 2 === 0) headers['if-none-match'] = known.staleTag
    const answer = await fetch(url + known.path, { headers, signal: AbortSignal.timeout(limitMs) })
    const fault = await faultOf(answer, known)
    const ms = performance.now() - start
    if (fault !== undefined) {
      counts.wrong.push(`${known.path}: ${fault}`)
    } else if (answer.status === 200) {
      counts.ok += 1
      counts.okMs += ms
    } else {
      counts.refused += 1
      counts.refusedMs += ms
    }
  } catch (error) {
    const { name, message, cause } = error as Error
    if (name === 'TimeoutError') counts.hanging += 1
    else counts.lost.push(`${message} ${cause ?? ''}`)
  }
  counts.slowestMs = Math.max(counts.slowestMs, performance.now() - start)
}

/** What is wrong with an answer, if it is neither the truth nor a refusal as the contract has it. */
async function faultOf(answer: Response, known: Known): Promise<string | undefined> {
  const { status, headers } = answer
  if (status === 200) {
    const { digest, bytes } = await digestOf(answer.body ?? [])
    return digest === known.digest ? undefined : `${bytes} bytes that are not the truth`
  }
  const text = await answer.text()
  if (status !== 503) return `status ${status}: ${text.slice(0, 200)}`
  const problem = JSON.parse(text) as Problem
  const sound =
    problem.code === 'service_unavailable' &&
    problem.requestId === headers.get('x-request-id') &&
    /^application\/json/.test(headers.get('content-type') ?? '') &&
    /^[1-9][0-9]*$/.test(headers.get('retry-after') ?? '')
  return sound ? undefined : `not the one error body: ${text}`
}

/** Holds what is promised of every fault, and tells the figures in one line. */
export function nothingAmiss(t: Test, counts: Counts, more = ''): void {
  const { sent, ok, refused, wrong, hanging, lost, slowestMs } = counts
  process.stderr.write(
    `${t.name}: ${sent} sent, ${ok} ok, ${refused} refused (503), ${wrong.length} wrong, ` +
      `${hanging} hanging, ${lost.length} lost, slowest ${Math.round(slowestMs)} ms${more}\n`,
  )
  t.same(wrong.slice(0, 3), [], 'every answer is the truth, or a 503 as it should be')
  t.same(lost.slice(0, 3), [], 'no request is lost')
  t.equal(hanging, 0, 'every request ends within its limit')
  t.equal(ok + refused, sent)
  t.ok(ok > 0)
}
