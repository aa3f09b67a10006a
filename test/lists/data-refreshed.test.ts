import { sql } from 'kysely'
import t from 'tap'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'

t.test('Data-Refreshed: with 200 and 304, and not a part of the ETag', async (t) => {
  const { db, get } = await startService(t)
  const { token, connection } = await addCaller(db)
  const lists = [connection.portfolio, connection.account, connection.orders]
  const refreshedAt = (time: string) =>
    sql`update connection set refreshed_at = ${time} where id = ${connection.id}`.execute(db)
  for (const list of lists) {
    await sql`update connection set refreshed_at = null where id = ${connection.id}`.execute(db)
    const never = await get(list, { token })
    t.equal(never.headers.get('data-refreshed'), null)
    await refreshedAt('2025-03-14T15:42:09.7Z')
    const first = await get(list, { token })
    t.equal(first.headers.get('data-refreshed'), '2025-03-14T15:42:09Z')
    t.equal(first.headers.get('etag'), never.headers.get('etag'))
    t.equal(first.headers.get('data-version'), never.headers.get('data-version'))
    await refreshedAt('2025-03-15T00:00:00Z')
    const known = { 'if-none-match': String(first.headers.get('etag')) }
    const unchanged = await get(list, { token, headers: known })
    t.equal(unchanged.status, 304)
    t.equal(unchanged.headers.get('data-refreshed'), '2025-03-15T00:00:00Z')
  }
  const accept = 'application/x-ndjson'
  const exported = await get(connection.portfolio, { token, headers: { accept } })
  t.equal(exported.headers.get('data-refreshed'), '2025-03-15T00:00:00Z')
})
