import pg from 'pg'
import { keyOf, LARGE } from '../data/data-set.ts'
import type { BenchDatabase } from '../data/database.ts'
import { dayBefore } from '../data/rows.ts'
import { captureStatement, SESSION } from '../data/statement.ts'
import { median } from '../load/statistics.ts'
import { digits, table } from '../report/tables.ts'
import type { PageQuery } from '../servers/targets.ts'

const REPETITIONS = 21

/**
 * Compares the service's statement for a page of one row with a count of the rows in the same range. It
 * uses the execution times of EXPLAIN ANALYZE.
 */
export async function measureTotals({ serviceUrl, owner }: BenchDatabase): Promise<string> {
  const client = new pg.Client({ connectionString: serviceUrl, options: SESSION })
  await client.connect()
  const rows: (string | undefined)[][] = []
  for (const [words, range] of Object.entries(RANGES)) {
    const query = { connection: LARGE, limit: 1, page: 0, ...range }
    const count = async (text: string) =>
      executionTime(owner, text, [keyOf(LARGE), range.from, range.to])
    const total = await owner.query<{ rows: string }>(COUNT, [keyOf(LARGE), range.from, range.to])
    rows.push([
      words,
      Number(total.rows[0]?.rows).toLocaleString('en'),
      digits(await statementTime(client, query)),
      digits(await count(COUNT)),
    ])
  }
  await client.end()
  return table(['Range', 'totalItems', 'the whole statement, ms', 'counting the rows, ms'], rows)
}

const COUNT = `
  select count(*) as rows from portfolio_transaction where connection_id = $1
    and effective_day >= coalesce($2, date '-infinity')
    and effective_day <= coalesce($3, date 'infinity')`

interface Range {
  from?: string
  to?: string
}

const RANGES: Record<string, Range> = {
  everything: {},
  'one day': { from: dayBefore(5_000), to: dayBefore(5_000) },
  'a month': { from: dayBefore(5_030), to: dayBefore(5_000) },
  'a year': { from: dayBefore(5_365), to: dayBefore(5_000) },
  'from ten years ago': { from: dayBefore(3_650) },
  'all but the newest and the oldest day': { from: dayBefore(9_998), to: dayBefore(1) },
}

async function statementTime(client: pg.Client, query: PageQuery): Promise<number> {
  const { text, values } = await captureStatement(query)
  return executionTime(client, text, values)
}

async function executionTime(
  client: Pick<pg.Client, 'query'>,
  text: string,
  values: unknown[],
): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < REPETITIONS; i += 1) {
    const { rows } = await client.query<{ 'QUERY PLAN': [{ 'Execution Time': number }] }>(
      `explain (analyze, timing off, format json) ${text}`,
      values,
    )
    times.push(rows[0]?.['QUERY PLAN'][0]['Execution Time'] ?? Number.NaN)
  }
  return median(times)
}
