import { type Kysely, sql } from 'kysely'
import t from 'tap'
import { StatementParameter } from '../../src/postgres/statements.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { requireFilters } from '../../src/queries/pages.ts'
import { lists } from '../../src/routes/lists.ts'
import { columnOf } from '../../src/schemas/fields.ts'
import { filtersOf } from '../../src/schemas/request.ts'
import { addRows, addressOf } from '../support/any-list.ts'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)

/** What triggers must notice. A new list needs no line here. */
type Change = (db: Kysely<Tables>, table: string, idColumn: string) => Promise<unknown>
const changes: Record<string, Change> = {
  update: (db, table, idColumn) =>
    sql`update ${sql.table(table)} set ${sql.ref(idColumn)} = gen_random_uuid()`.execute(db),
  delete: (db, table) => sql`delete from ${sql.table(table)}`.execute(db),
  truncate: (db, table) => sql`truncate ${sql.table(table)}`.execute(db),
}

for (const route of lists) {
  const { list } = route
  /** Returns the ETag of a list with one row, and a function that sends it again. */
  const startWithRow = async () => {
    const { token, connection } = await addCaller(db)
    await addRows(db, list, connection, 1)
    const path = addressOf(route, connection.token)
    const etag = String((await get(path, { token })).headers.get('etag'))
    const sendAgain = () => get(path, { token, headers: { 'if-none-match': etag } })
    return { connection, sendAgain }
  }

  t.test(`${list.name} without a change: 304`, async (t) => {
    const { sendAgain } = await startWithRow()
    t.equal((await sendAgain()).status, 304)
  })

  t.test(`${list.name} after an insert: 200 with a new version`, async (t) => {
    const { connection, sendAgain } = await startWithRow()
    await addRows(db, list, connection, 1)
    t.equal((await sendAgain()).status, 200)
  })

  for (const [event, change] of Object.entries(changes))
    t.test(`${list.name} after ${event}: 200 with a new version`, async (t) => {
      const { sendAgain } = await startWithRow()
      await change(db, list.table, columnOf(list.id))
      t.equal((await sendAgain()).status, 200)
    })
}

t.test('a statement of a page that leaves out a filter: the start ends', (t) => {
  const title = 'a page'
  const names = Object.keys(filtersOf({}))
  const parametersOf = (used: string[]) => used.map((name) => new StatementParameter(name, 'date'))
  requireFilters({ title, parameters: parametersOf(names) })
  for (const left of names) {
    const parameters = parametersOf(names.filter((name) => name !== left))
    t.throws(() => requireFilters({ title, parameters }), {
      message: `the statement a page does not use the filter ${left}`,
    })
  }
  t.end()
})
