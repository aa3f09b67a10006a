import { get, type IncomingMessage } from 'node:http'
import type pg from 'pg'
import { loginOfCheckout } from '../data/checkout-login.ts'
import { importLines, makeConnections, settle } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
import { orderLines, transactionLines } from '../data/rows.ts'
import { percentile } from '../load/statistics.ts'
import { digits, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { startService, type Target } from '../servers/targets.ts'

/** Connection of the app with slow reads: many rows of one day, and many transfer orders. */
const SLOW = 1
const ROWS_OF_ONE_DAY = 400_000
const ORDERS = 200_000
/** Connection of the other app. */
const OTHER = 2
const ROWS = 20_000
/** Exports, and as many pages of 10,000 rows, of the other app in each case. */
const RESPONSES = 25

const CASES = [
  { readers: 3, timeoutMs: 5_000 },
  { readers: 10, timeoutMs: 5_000 },
  { readers: 3, timeoutMs: 1_000 },
  { readers: 10, timeoutMs: 1_000 },
]

interface Checkout {
  /** URL of the database for its service. */
  url: string
  /** Undefined for this checkout. */
  directory: string | undefined
}

/**
 * Measures the exports and large pages of an app next to slow reads of another one.
 * @param baseline directory of another checkout, which is measured in turn
 */
export async function measureSlowReaders(
  server: PostgresServer,
  baseline?: string,
): Promise<string> {
  return withDatabase(server, async (database) => {
    await fill(database.owner)
    const checkouts: Checkout[] = [{ url: database.serviceUrl, directory: undefined }]
    if (baseline !== undefined)
      checkouts.unshift({ url: await loginOfCheckout(database, baseline), directory: baseline })
    const rows: (string | number | undefined)[][] = []
    for (const { readers, timeoutMs } of CASES) {
      const settings = { STATEMENT_TIMEOUT_MS: String(timeoutMs) }
      for (const { url, directory } of checkouts) {
        await withServers(async (start) => {
          const service = await start(startService(url, settings, directory))
          const found = await measureNextTo(service, readers)
          const name = `${readers}, statements of at most ${timeoutMs} ms`
          rows.push([directory ? `${name}: baseline` : name, ...found])
        })
      }
    }
    return table(COLUMNS, rows)
  })
}

const COLUMNS = [
  'Slow readers',
  'responses of the other app',
  'cut',
  '503',
  'export p50 ms',
  'slowest',
  'page p50 ms',
  'slowest',
  'slow reads: 200',
  '503',
]

async function fill(owner: pg.Pool): Promise<void> {
  await makeConnections(owner, OTHER)
  const ofOneDay = transactionLines(SLOW, ROWS_OF_ONE_DAY, ROWS_OF_ONE_DAY)
  await importLines(owner, 'portfolio-transactions', SLOW, ofOneDay)
  await importLines(owner, 'transfer-orders', SLOW, orderLines(SLOW, ORDERS))
  await importLines(owner, 'portfolio-transactions', OTHER, transactionLines(OTHER, ROWS, 10))
  await settle(owner)
}

async function measureNextTo(service: Target, readers: number) {
  let isRunning = true
  const slow = { served: 0, rejected: 0 }
  const deepPage = service.page({ connection: SLOW, limit: 20, page: ROWS_OF_ONE_DAY / 20 - 1 })
  const readSlowly = async (reader: number) => {
    const path = reader % 3 === 2 ? service.orders(SLOW) : deepPage
    while (isRunning) {
      const { status } = await download(service, path, service.headers(SLOW))
      if (status === 200) slow.served += 1
      else slow.rejected += 1
    }
  }
  // The first responses tell the service which apps call.
  for (const connection of [SLOW, OTHER])
    await download(
      service,
      service.page({ connection, limit: 1, page: 0 }),
      service.headers(connection),
    )
  const reading = Array.from({ length: readers }, (_, reader) => readSlowly(reader))
  const counts = { cut: 0, rejected: 0 }
  const exports: number[] = []
  const pages: number[] = []
  const page = service.page({ connection: OTHER, limit: 10_000, page: 0 })
  const [list = ''] = page.split('?')
  const measure = async (path: string, accept: string, times: number[]) => {
    const begin = performance.now()
    const headers = { ...service.headers(OTHER), accept }
    const { status } = await download(service, path, headers)
    times.push(performance.now() - begin)
    if (status === 'cut') counts.cut += 1
    if (status === 503) counts.rejected += 1
  }
  for (let n = 0; n < RESPONSES; n += 1) {
    await measure(list, 'application/x-ndjson', exports)
    await measure(page, 'application/json', pages)
  }
  isRunning = false
  await Promise.all(reading)
  return [
    2 * RESPONSES,
    counts.cut,
    counts.rejected,
    ...[exports, pages].flatMap((times) => {
      const sorted = Float64Array.from(times).sort()
      return [digits(percentile(sorted, 0.5)), digits(sorted.at(-1))]
    }),
    slow.served,
    slow.rejected,
  ]
}

/** Reads a whole response, without keeping it. */
function download(
  { port }: Target,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number | 'cut' }> {
  return new Promise((resolve) => {
    const cut = () => resolve({ status: 'cut' })
    const read = (response: IncomingMessage) => {
      response.on('error', cut)
      response.on('end', () => resolve({ status: response.statusCode ?? 0 }))
      response.resume()
    }
    get({ host: '127.0.0.1', port, path, headers, agent: false }, read).on('error', cut)
  })
}
