import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import t from 'tap'
import { deleteConnections } from '../../src/operator/deletion.ts'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import { verifyRowCounts } from '../../src/operator/verify.ts'
import { createDatabase, openClient, openPool } from '../support/database.ts'
import { chunksOf, portfolioLine } from '../support/importing.ts'
import { openAsOwner } from '../support/logins.ts'
import { addCaller, addConnection, type List, lists } from '../support/rows.ts'

const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const pool = openPool(t, url, { max: 3 })
const { appId } = await addCaller(db)

const insert = (list: List, owner: string, id: string) => `
  insert into ${lists[list].table} (connection_id, ${lists[list].idColumn}, ${owner}, type, amount, operation_date_day)
  select ${id}, gen_random_uuid(), gen_random_uuid(), 'UNKNOWN', 1, '2025-01-01'
  from generate_series(1, 5)`
const portfolio = (id: string) => insert('portfolio', 'portfolio_id', id)
const account = (id: string) => insert('account', 'account_id', id)

const writers: Record<string, (client: pg.Client, id: string, round: number) => Promise<unknown>> =
  {
    import: (_, connectionId, round) => {
      const sources = [{ name: 'rows', chunks: chunksOf(portfolioLine(round)) }]
      return importRows(pool, { type: 'portfolio-transactions', connectionId, sources })
    },
    'SQL statement': (client, id) => client.query(portfolio(id)),
    'SQL transaction in the documented order': async (client, id) => {
      await client.query('begin')
      await client.query(`
        lock table connection, portfolio_transaction, account_transaction, assets_transfer_order
          in row exclusive mode`)
      await client.query(`select from connection where id = ${id} for no key update`)
      await client.query(account(id))
      await client.query(portfolio(id))
      await client.query('commit')
    },
    'connection delete': async (client) => {
      const { id } = await addConnection(db, appId)
      await client.query(portfolio(id))
      await deleteConnections(db, [id])
    },
  }

for (const [name, write] of Object.entries(writers)) {
  t.test(`TRUNCATE beside ${name}: no deadlock`, async (t) => {
    const [own, other] = [await addConnection(db, appId), await addConnection(db, appId)]
    let writing = true
    let writes = 0
    const written = Promise.all(
      [1, 2].map(async () => {
        const client = await openClient(t, url)
        for (; writing; writes += 1) await write(client, own.id, writes)
      }),
    )
    written.catch(() => {})
    const truncating = await openClient(t, url)
    for (let round = 0; round < 12 || writes <= 4; round += 1) {
      await sleep(20)
      await truncating.query(portfolio(other.id))
      await truncating.query('truncate portfolio_transaction')
    }
    writing = false
    await written
    const { differences, numbers } = await verifyRowCounts(db)
    t.same({ differences, numbers }, { differences: [], numbers: [] })
  })
}
