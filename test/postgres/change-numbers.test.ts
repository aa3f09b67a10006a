import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import t, { type Test } from 'tap'
import { verifyRowCounts } from '../../src/operator/verify.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { openAsOwner } from '../support/logins.ts'
import { addCaller, type List, listNames, lists } from '../support/rows.ts'

/** Values of change_number, from the number of the row before and the version before. */
const NUMBERS = {
  zero: '0',
  negative: '-7',
  old: 'least(n, 3)',
  'that of the row': 'n',
  newer: '(v + 9) << 31',
  'largest of all': '9223372036854775807 - n % 3',
  'of the next version, doubled': '((v + 1) << 31) + 1 + n % 2',
  'next version, of a removal': '((v + 1) << 31) + (1 << 30) + 1 + n % 9',
} as const

const databases = await Promise.all(
  listNames.map(async (list) => {
    const { url } = await createDatabase(t)
    const client = await openClient(t, url)
    return { list, client, db: openAsOwner(t, url) }
  }),
)

for (const { list, client, db } of databases) {
  const { table, columns, run } = writers(client, list)

  for (const [name, number] of Object.entries(NUMBERS)) {
    t.test(`${list}, SQL writes a number that is ${name}: each row gets a new one`, async (t) => {
      const { id } = (await addCaller(db)).connection
      await lists[list].add(db, { id }, {}, {}, {}, {}, {})
      const versionOf = async () => {
        const found = await client.query(`select data_version from connection where id = ${id}`)
        return BigInt(found.rows[0].data_version)
      }
      for (const [kind, write] of Object.entries(run)) {
        const version = await versionOf()
        const value = number.replaceAll('n', 'change_number').replaceAll('v', `${version}::bigint`)
        // The statement writes three of the five rows.
        const written = `connection_id = ${id} and amount = 8`
        await client.query(`update ${table} set amount = 2 where ${written}`)
        const before = await versionOf()
        await write(id, value)
        const { rows } = await client.query(
          `select change_number::text as number from ${table} where ${written}`,
        )
        t.equal(rows.length, 3, kind)
        const newest = await versionOf()
        const versions = rows.map((row) => BigInt(row.number) >> 31n)
        t.ok(
          versions.every((each) => each > before && each <= newest),
          `${kind}: ${versions}`,
        )
        t.equal(new Set(rows.map((row) => row.number)).size, 3, kind)
        t.same((await verifyRowCounts(db)).numbers, [], kind)
      }
      t.ok(columns.includes('change_number'))
    })
  }

  for (const statistics of ['no statistics', 'statistics of few rows']) {
    t.test(`${list}, ${statistics}: the rows of a statement are read a few times`, async (t) => {
      const few = await createDatabase(t)
      const owner = openAsOwner(t, few.url)
      const { connection } = await addCaller(owner)
      const session = await openClient(t, few.url)
      const { insert } = writers(session, list)
      await withoutAutovacuum(session, list)
      await lists[list].add(owner, connection, {})
      const tableOf = async (id: string) => {
        const { rows } = await session.query(
          `select tableoid::text as table from ${table} where connection_id = ${id} limit 1`,
        )
        return rows[0].table
      }
      // Rows of another connection, which must not be read, in the same partition.
      const own = await tableOf(connection.id)
      let partition: string
      do {
        const other = (await addCaller(owner)).connection
        await lists[list].add(owner, other, ...Array.from({ length: 60 }, () => ({})))
        partition = await tableOf(other.id)
      } while (partition !== own)
      if (statistics === 'statistics of few rows') await session.query('analyze')
      await readsOf(t, session, insert(connection.id, 1), 20)
      await readsOf(t, session, insert(connection.id, 1_000), 6 * 1_000)
      await readsOf(t, session, insert(connection.id, 1), 20)
      const update = `update ${table} set amount = 3 where connection_id = ${connection.id}`
      await readsOf(t, session, update, 8 * 1_000)
    })
  }
}

/** Statements that write three rows of a connection with `amount = 8` and a change number. */
function writers(client: pg.Client, list: List) {
  const table = lists[list].table
  const key = lists[list].idColumn
  const owner = list === 'portfolio' ? 'portfolio_id' : 'account_id'
  const columns = `connection_id, ${key}, ${owner}, type, amount, operation_date_day, change_number`
  const three = (id: string) =>
    `(select * from ${table} where connection_id = ${id} order by ${key} limit 3)`
  const values = (number: string) =>
    `connection_id, ${key}, ${owner}, 'UNKNOWN' as type, 8 as amount, operation_date_day, ${number} as change_number`
  const gone = (id: string) =>
    `delete from ${table} where (connection_id, ${key}) in (select connection_id, ${key} from ${three(id)} x)`
  /** Removes three rows and puts them back. */
  const back = async (id: string, number: string) => {
    await client.query(
      `create temporary table kept as select ${values(number)} from ${three(id)} x`,
    )
    await client.query(gone(id))
  }
  const after = () => client.query('drop table kept')
  const run = {
    update: (id: string, number: string) =>
      client.query(`update ${table} t set amount = 8, change_number = ${number}
        where (connection_id, ${key}) in (select connection_id, ${key} from ${three(id)} x)`),
    insert: async (id: string, number: string) => {
      await back(id, number)
      await client.query(`insert into ${table} (${columns}) select ${columns} from kept`)
      await after()
    },
    upsert: (id: string, number: string) =>
      client.query(`insert into ${table} (${columns}) select ${values(number)} from ${three(id)} x
        on conflict (connection_id, ${key}) do update
        set amount = excluded.amount, change_number = excluded.change_number`),
    copy: async (id: string, number: string) => {
      await back(id, number)
      const { rows } = await client.query({ text: `select ${columns} from kept`, rowMode: 'array' })
      await after()
      const copy = client.query(copyFrom(`copy ${table} (${columns}) from stdin csv`))
      const lines = rows.map((row) =>
        row.map((value) => (value instanceof Date ? '2025-01-01' : value)).join(),
      )
      await new Promise((resolve, reject) => {
        copy.on('finish', resolve).on('error', reject)
        copy.end(`${lines.join('\n')}\n`)
      })
    },
    merge: async (id: string, number: string) => {
      await client.query(
        `create temporary table kept as select ${values(number)} from ${three(id)} x`,
      )
      await client.query(`delete from ${table} where connection_id = ${id}
        and ${key} in (select ${key} from kept order by ${key} limit 1)`)
      await client.query(`merge into ${table} t using kept k
        on t.connection_id = k.connection_id and t.${key} = k.${key}
        when matched then update set amount = k.amount, change_number = k.change_number
        when not matched then insert (${columns}) values (${columns.split(', ').map((name) => `k.${name}`)})`)
      await after()
    },
  }
  const insert = (id: string, rows: number) => `insert into ${table}
    (connection_id, ${key}, ${owner}, type, amount, operation_date_day)
    select ${id}, gen_random_uuid(), gen_random_uuid(), 'UNKNOWN', n, '2025-01-01' from generate_series(1, ${rows}) n`
  return { table, columns, run, insert }
}

async function withoutAutovacuum(client: pg.Client, list: List): Promise<void> {
  const { rows } = await client.query(`select relname from pg_class
    where relkind = 'r' and relname ~ '^${lists[list].table}'`)
  for (const { relname } of rows)
    await client.query(`alter table ${relname} set (autovacuum_enabled = off)`)
}

/** Counts the rows that a statement and its triggers read from the list, and those that their joins compare in vain. */
async function readsOf(t: Test, client: pg.Client, statement: string, most: number): Promise<void> {
  // The counters also have reads of earlier transactions.
  const readRows = async () => {
    const { rows } = await client.query(`
      select sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::int as reads
      from pg_stat_xact_user_tables where relname ~ '^(portfolio|account)_transaction(_\\d+)?$'`)
    return rows[0].reads
  }
  let removed = 0
  const addPlan = ({ message = '' }: { message?: string | undefined }) => {
    const [, plan] = message.split('plan:\n')
    if (plan !== undefined) removed += rowsRemovedByJoins(JSON.parse(plan).Plan)
  }
  await client.query('begin')
  const before = await readRows()
  await client.query(`load 'auto_explain'`)
  await client.query(EXPLAIN_AS_NOTICES)
  client.on('notice', addPlan)
  const { rowCount } = await client.query(statement)
  client.off('notice', addPlan)
  // Their settings end with the transaction.
  const reads = (await readRows()) - before
  await client.query('commit')
  t.ok(reads <= most, `${rowCount} rows: ${reads} reads, at most ${most}`)
  t.ok(removed <= most, `${rowCount} rows: ${removed} compared in vain, at most ${most}`)
}

const EXPLAIN_AS_NOTICES = `
  set local auto_explain.log_min_duration = 0;
  set local auto_explain.log_nested_statements = on;
  set local auto_explain.log_analyze = on;
  set local auto_explain.log_timing = off;
  set local auto_explain.log_format = json;
  set local auto_explain.log_level = notice`

interface Plan {
  'Actual Loops': number
  'Rows Removed by Join Filter'?: number
  Plans?: Plan[]
}

function rowsRemovedByJoins(plan: Plan): number {
  const removed = (plan['Rows Removed by Join Filter'] ?? 0) * plan['Actual Loops']
  const below = (plan.Plans ?? []).map(rowsRemovedByJoins)
  return below.reduce((sum, rows) => sum + rows, removed)
}
