import type { Test } from 'tap'
import { DEMO } from '../../../seeds/sample-data.ts'
import { readContract } from '../../openapi/contract.ts'
import { fc, runs, seed } from '../../support/random.ts'
import { startSeededService } from '../../support/seeded-service.ts'
import { errorOf } from './check-response.ts'
import { operationsOf } from './document.ts'
import { Client } from './exchange.ts'
import { anyRequest, type Request } from './requests.ts'

const CLIENTS = 16
const BATCH = 500

/**
 * Generates valid and invalid requests from the served OpenAPI document, and compares every response
 * with it. The service has the sample data.
 */
export async function fuzz(t: Test): Promise<void> {
  const count = runs(2_000)
  // A malformed target, such as `/#`, may lead to the page /docs, which the document does not describe.
  const environment = { DOCS_PAGE: 'false', STATEMENT_TIMEOUT_MS: '60000' }
  const service = await startSeededService(t, { logLevel: 'error', environment })
  const document = (await service.get('/openapi.json')).text
  const contract = readContract(document)
  const { token, connections } = DEMO.wealth
  const known = { token, connections: Object.values(connections).map((one) => one.token) }
  const requests = anyRequest(operationsOf(document), known)
  const clients = Array.from({ length: CLIENTS }, () => new Client(service.port))
  t.teardown(() => {
    for (const client of clients) client.close()
  })
  const wrong: string[] = []
  const statuses = new Map<string, number>()
  let slowest = 0

  const send = async (client: Client, request: Request, place: string) => {
    const start = performance.now()
    const { previous } = client
    const result = await client.send(request)
    slowest = Math.max(slowest, performance.now() - start)
    const status = result === 'timeout' ? result : String(result[0]?.status ?? 'closed')
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    const error = errorOf(contract, request, result)
    if (error)
      wrong.push([`${place}: ${error}`, ...literal(previous), ...literal(request)].join('\n'))
  }
  for (let sent = 0; sent < count; sent += BATCH) {
    const batch = fc.sample(requests, { seed: seed + sent, numRuns: Math.min(BATCH, count - sent) })
    const queue = batch.entries()
    const work = async (client: Client) => {
      for (const [index, request] of queue) {
        await send(client, request, `request ${sent + index} of seed ${seed}`)
      }
    }
    await Promise.all(clients.map(work))
  }
  const counts = [...statuses].sort().map(([status, times]) => `${status}: ${times}`)
  const report = `seed ${seed}, ${count} sent (${counts.join(', ')}), ${wrong.length} wrong`
  process.stderr.write(`fuzz: ${report}, slowest ${Math.round(slowest)} ms\n`)
  t.same(wrong.slice(0, 10), [], report)
  t.same(service.log, [], 'no error in the log')
}

/** Bytes of a request as a JavaScript string. */
const literal = (request: Request | undefined) =>
  request ? [JSON.stringify(request.bytes).slice(0, 2_000)] : []
