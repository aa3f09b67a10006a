import type pg from 'pg'
import {
  CONNECTIONS,
  fillSmall,
  importLines,
  makeConnections,
  ROWS_EACH,
  ROWS_PER_DAY,
  settle,
} from './data-set.ts'
import { type BenchDatabase, type BenchServer, withDatabase } from './database.ts'
import { dailySyncs, fullPages } from './loads.ts'
import { type MeasureOptions, measure } from './measure.ts'
import { loadTable } from './report.ts'
import { NEWEST_DAY, transactionLines } from './rows.ts'
import { type Runner, serverRunner } from './runners.ts'
import { withServers } from './scene.ts'
import type { ServerProcess } from './server-process.ts'
import { serviceTarget, startService } from './targets.ts'

const MANY_CONNECTIONS = 5_000
const MANY_ROWS_EACH = 2_000
/** The first few are imported, and the others are copies of them with ids of their own. */
const IMPORTED = 10

/** How rows came, and so how they lie on disk. They are copied in parts, n from 0 to 9. */
interface Layout {
  order: string
  part: (n: number) => string
  /** What an operator could do about it, and is measured, too. */
  mend?: string
}

const LAYOUTS: Record<string, Layout> = {
  // The rows of a connection side by side.
  'imported one connection at a time': {
    order: 'c.id',
    part: (n) => `c.id - 1 between ${n * 500} and ${n * 500 + 499}`,
  },
  // The worst case: the rows of a connection all on different pages.
  'synced day by day': {
    order: 't.effective_day',
    part: (n) =>
      `date '${NEWEST_DAY}' - t.effective_day between ${(9 - n) * 250} and ${(9 - n) * 250 + 249}`,
    mend: 'cluster portfolio_transaction using portfolio_transaction_list',
  },
}

/** The service on 300,000 rows in 200 connections, and on 10,000,000 in 5,000. */
export async function measureGrowth(server: BenchServer, options: MeasureOptions): Promise<string> {
  const parts: string[] = []
  await withDatabase(server, async (small) => {
    await fillSmall(small.owner)
    await settle(small.owner)
    for (const [words, layout] of Object.entries(LAYOUTS)) {
      await withDatabase(server, async (large) => {
        await fillMany(large.owner, layout)
        const name = `10,000,000 rows, ${words}`
        parts.push(await compare({ small, large }, name, options))
        if (layout.mend === undefined) return
        await large.owner.query(layout.mend)
        await settle(large.owner)
        parts.push(await compare({ small, large }, `${name}, then ${layout.mend}`, options))
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
  return withServers(async (started) => {
    const few = await runnersOf(small, '300,000 rows', CONNECTIONS, ROWS_EACH, started)
    const many = await runnersOf(large, name, MANY_CONNECTIONS, MANY_ROWS_EACH, started)
    return loadTable(await measure([...few, ...many], options), 'first')
  })
}

async function runnersOf(
  database: BenchDatabase,
  name: string,
  connections: number,
  rows: number,
  started: ServerProcess[],
): Promise<Runner[]> {
  const server = await startService(database.serviceUrl)
  started.push(server)
  const target = serviceTarget(server)
  const numbers = shuffled(connections)
  return [fullPages(numbers, rows), dailySyncs(numbers, rows)].map((load) =>
    serverRunner(database, load, { name, server, requests: load.requests(target) }),
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
  for (let n = 0; n < 10; n += 1) {
    await owner.query(
      `insert into portfolio_transaction (connection_id, transaction_id, ${names})
       select c.id, gen_random_uuid(), ${names} from portfolio_transaction t
       join connection c on c.id > ${IMPORTED} and c.id % ${IMPORTED} + 1 = t.connection_id
       where t.connection_id <= ${IMPORTED} and ${part(n)} order by ${order}`,
    )
  }
  await settle(owner)
}

/** The connections in an order that no cache can guess. */
function shuffled(count: number): number[] {
  const step = 1_999
  return Array.from({ length: count }, (_, index) => ((index * step) % count) + 1)
}
