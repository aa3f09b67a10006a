import type pg from 'pg'
import {
  CONNECTIONS,
  fillSmall,
  importLines,
  keyOf,
  makeConnections,
  ROWS_EACH,
  ROWS_PER_DAY,
  settle,
} from '../data/data-set.ts'
import { type BenchDatabase, type PostgresServer, withDatabase } from '../data/database.ts'
import { NEWEST_DAY, transactionLines } from '../data/rows.ts'
import { dailySyncs, fullPages } from '../load/loads.ts'
import { type MeasureOptions, measure } from '../load/measure.ts'
import { type Runner, serverRunner } from '../load/runners.ts'
import { loadTable } from '../report/tables.ts'
import { type Start, withServers } from '../servers/fixture.ts'
import { startService } from '../servers/targets.ts'

const MANY_CONNECTIONS = 5_000
const MANY_ROWS_EACH = 2_000
/** These connections are imported; the others are copies with new ids. */
const IMPORTED = 10

/** Order of insertion, and so of the rows on disk. Rows are copied in parts, n from 0 to 9. */
interface Layout {
  order: string
  part: (n: number) => string
  /** Statement with which an operator can improve the layout; measured, too. */
  improvement?: string
}

const LAYOUTS: Record<string, Layout> = {
  // The rows of a connection are adjacent.
  'imported one connection at a time': {
    order: 'c.id',
    part: (n) => `abs(c.id / 10 % 10) = ${n}`,
  },
  // The worst case: every row of a connection is on another page.
  'synced day by day': {
    order: 't.effective_day',
    part: (n) =>
      `date '${NEWEST_DAY}' - t.effective_day between ${(9 - n) * 250} and ${(9 - n) * 250 + 249}`,
    improvement: 'cluster portfolio_transaction using portfolio_transaction_list',
  },
}

/** Compares 300,000 rows in 200 connections with 10,000,000 rows in 5,000. */
export async function measureGrowth(
  server: PostgresServer,
  options: MeasureOptions,
): Promise<string> {
  const parts: string[] = []
  await withDatabase(server, async (small) => {
    await fillSmall(small.owner)
    await settle(small.owner)
    for (const [words, layout] of Object.entries(LAYOUTS)) {
      await withDatabase(server, async (large) => {
        await fillMany(large.owner, layout)
        const name = `10,000,000 rows, ${words}`
        parts.push(await compare({ small, large }, name, options))
        if (layout.improvement === undefined) return
        await large.owner.query(layout.improvement)
        await settle(large.owner)
        parts.push(await compare({ small, large }, `${name}, then ${layout.improvement}`, options))
      })
    }
  })
  return parts.join('\n\n')
}

function compare(
  { small, large }: { small: BenchDatabase; large: BenchDatabase },
  name: string,
  options: MeasureOptions,
): Promise<string> {
  return withServers(async (start) => {
    const few = await runnersOf(small, '300,000 rows', CONNECTIONS, ROWS_EACH, start)
    const many = await runnersOf(large, name, MANY_CONNECTIONS, MANY_ROWS_EACH, start)
    return loadTable(await measure([...few, ...many], options), 'first')
  })
}

async function runnersOf(
  database: BenchDatabase,
  name: string,
  connections: number,
  rows: number,
  start: Start,
): Promise<Runner[]> {
  const service = await start(startService(database.serviceUrl))
  const numbers = shuffled(connections)
  return [fullPages(numbers, rows), dailySyncs(numbers, rows)].map((load) =>
    serverRunner(database, load, { ...service, name }, load.requests(service)),
  )
}

async function fillMany(owner: pg.Pool, { order, part }: Layout): Promise<void> {
  await makeConnections(owner, MANY_CONNECTIONS)
  for (let id = 1; id <= IMPORTED; id += 1) {
    const rows = transactionLines(id, MANY_ROWS_EACH, ROWS_PER_DAY)
    await importLines(owner, 'portfolio-transactions', id, rows)
  }
  const { rows } = await owner.query<{ names: string }>(
    `select string_agg(quote_ident(attname), ', ') as names from pg_attribute
     where attrelid = 'portfolio_transaction'::regclass and attnum > 0 and attgenerated = ''
       and attname not in ('connection_id', 'transaction_id')`,
  )
  const names = rows[0]?.names
  const imported = Array.from({ length: IMPORTED }, (_, index) => keyOf(index + 1))
  for (let n = 0; n < 10; n += 1) {
    await owner.query(
      `insert into portfolio_transaction (connection_id, transaction_id, ${names})
       select c.id, gen_random_uuid(), ${names} from portfolio_transaction t
       join connection c on c.id <> all($1::bigint[])
         and t.connection_id = ($1::bigint[])[abs(c.id % ${IMPORTED}) + 1]
       where ${part(n)} order by ${order}`,
      [imported],
    )
  }
  await settle(owner)
}

/** Connections in an order that defeats caches. */
function shuffled(count: number): number[] {
  const step = 1_999
  return Array.from({ length: count }, (_, index) => ((index * step) % count) + 1)
}
