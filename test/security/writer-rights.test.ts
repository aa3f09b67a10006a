import type pg from 'pg'
import t from 'tap'
import { type RowType, rowTypes } from '../../src/operator/loading/row-types.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { loginOf, openAsOwner } from '../support/logins.ts'
import {
  addAccountTransactions,
  addCaller,
  addPortfolioTransactions,
  addTransferOrders,
} from '../support/rows.ts'

/** What the check must know of a list: its table, and the columns that a pipeline writes. */
interface WrittenList {
  table: string
  key: string
  columns: string[]
}

const writtenLists: WrittenList[] = Object.values<RowType>(rowTypes).map((list) => ({
  table: list.table,
  key: list.key.column,
  columns: ['connection_id', ...list.columns.map(({ name }) => name)],
}))

/** Compares the rights of investment_writer with the columns of the lists. @returns a line for each difference */
async function differences(owner: pg.Client, lists: WrittenList[]): Promise<string[]> {
  const { rows } = await owner.query<{
    table: string
    column: string
    insert: boolean
    update: boolean
  }>(`
    select relname as table, attname as column,
      has_column_privilege('investment_writer', c.oid, attnum, 'insert') as insert,
      has_column_privilege('investment_writer', c.oid, attnum, 'update') as update
    from pg_class c join pg_attribute on attrelid = c.oid and attnum > 0 and not attisdropped
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition
      and relname <> 'connection'
    order by relname, attnum`)
  const found: string[] = []
  for (const { table, column, insert, update } of rows) {
    const wanted = lists.find((list) => list.table === table)?.columns.includes(column) ?? false
    if (insert !== wanted) found.push(`${table}.${column}: insert ${wanted ? 'denied' : 'allowed'}`)
    if (update !== wanted) found.push(`${table}.${column}: update ${wanted ? 'denied' : 'allowed'}`)
  }
  const existing = new Set(rows.map(({ table, column }) => `${table}.${column}`))
  for (const { table, columns } of lists)
    for (const column of columns)
      if (!existing.has(`${table}.${column}`)) found.push(`${table}.${column}: no such column`)
  return found
}

t.test(
  'investment_writer: may write each field of each list, and nothing else of them',
  async (t) => {
    const owner = await openClient(t, (await createDatabase(t)).url)
    t.same(await differences(owner, writtenLists), [])
  },
)

t.test('the check: fails without a list, without a column, and without a right', async (t) => {
  const owner = await openClient(t, (await createDatabase(t)).url)
  // The test above reports these. A forgotten right would otherwise fail each of the checks below.
  const known = await differences(owner, writtenLists)
  const added = async (lists: WrittenList[]) => {
    const found = await differences(owner, lists)
    return found.filter((difference) => !known.includes(difference))
  }
  for (const left of writtenLists) {
    const others = writtenLists.filter((list) => list !== left)
    t.ok((await added(others)).length > 0, left.table)
    for (const column of left.columns) {
      const columns = left.columns.filter((each) => each !== column)
      t.same(
        await added([...others, { ...left, columns }]),
        [`${left.table}.${column}: insert allowed`, `${left.table}.${column}: update allowed`],
        column,
      )
      await owner.query(`revoke insert (${column}) on ${left.table} from investment_writer`)
      t.same(await added(writtenLists), [`${left.table}.${column}: insert denied`])
      await owner.query(`grant insert (${column}) on ${left.table} to investment_writer`)
    }
    await owner.query(`alter table ${left.table} add column new_field text`)
    const columns = [...left.columns, 'new_field']
    t.same(await added([...others, { ...left, columns }]), [
      `${left.table}.new_field: insert denied`,
      `${left.table}.new_field: update denied`,
    ])
    await owner.query(`alter table ${left.table} drop column new_field`)
  }
})

t.test(
  'investment_writer: inserts and updates each column, and gets 42501 for the others',
  async (t) => {
    const { url } = await createDatabase(t)
    const db = openAsOwner(t, url)
    const { connection } = await addCaller(db)
    await addPortfolioTransactions(db, connection, {})
    await addAccountTransactions(db, connection, {})
    await addTransferOrders(db, connection, {})
    const writer = await openClient(t, await loginOf(t, db, url, 'writer'))

    for (const { table, key, columns } of writtenLists) {
      const names = columns.join(', ')
      const values = columns.map((name) => (name === key ? 'gen_random_uuid()' : name)).join(', ')
      const { rows } = await writer.query(
        `insert into ${table} (${names}) select ${values} from ${table} returning ${key} as id`,
      )
      t.equal(rows.length, 1, table)
      for (const column of columns) {
        const { rowCount } = await writer.query(
          `update ${table} set ${column} = ${column} where ${key} = $1`,
          [rows[0].id],
        )
        t.equal(rowCount, 1, `${table}.${column}`)
      }
      const { fields } = await writer.query(`select * from ${table} limit 0`)
      const maintained = fields.map(({ name }) => name).filter((name) => !columns.includes(name))
      t.same(
        maintained,
        table === 'assets_transfer_order' ? [] : ['effective_day', 'change_number'],
        table,
      )
      for (const column of maintained) {
        const update = `update ${table} set ${column} = default`
        await t.rejects(writer.query(update), { code: '42501' }, update)
        const insert = `insert into ${table} (${column}) values (default)`
        await t.rejects(writer.query(insert), { code: '42501' }, insert)
      }
      t.equal((await writer.query(`delete from ${table}`)).rowCount, 2)
    }
  },
)
