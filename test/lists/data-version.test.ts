import { sql } from 'kysely'
import t from 'tap'
import { addCaller, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)

for (const list of listNames) {
  const { add } = lists[list]

  t.test(`200, then 412, ${list}: pages of one data version`, async (t) => {
    const { token, connection } = await addCaller(db)
    await add(db, connection, {}, {}, {})
    const first = await get(`${connection[list]}?limit=1`, { token })
    const version = String(first.headers.get('data-version'))
    const path = `${connection[list]}?limit=1&page=1&version=${version}`
    const second = await get(path, { token })
    t.equal(second.status, 200)
    t.equal(second.text, (await get(`${connection[list]}?limit=1&page=1`, { token })).text)
    const next = `<?limit=1&page=2&version=${version}>; rel="next"`
    t.ok(String(second.headers.get('link')).includes(next), 'Link has the version')
    t.notMatch(first.headers.get('link'), /version/)
    const headers = { 'if-none-match': String(second.headers.get('etag')) }
    t.equal((await get(path, { token, headers })).status, 304)

    await add(db, connection, {})
    for (const options of [{ token }, { token, headers }]) {
      const changed = await get(path, options)
      t.equal(changed.status, 412)
      t.match(changed.json(), { code: 'data_changed' })
    }
    t.not((await get(connection[list], { token })).headers.get('data-version'), version)
  })

  t.test(`412, ${list}: another list of the connection has changed`, async (t) => {
    const { token, connection } = await addCaller(db)
    const { headers } = await get(connection[list], { token })
    for (const name of listNames.filter((name) => name !== list))
      await lists[name].add(db, connection, {})
    const path = `${connection[list]}?version=${headers.get('data-version')}`
    t.equal((await get(path, { token })).status, 412)
  })

  t.test(`400, ${list}: version is not a data version, or next to since`, async (t) => {
    const { token, connection } = await addCaller(db)
    const errorOf = async (query: string) => {
      const { status, json } = await get(`${connection[list]}?${query}`, { token })
      const { errors } = json() as { errors: { parameter: string; code: string }[] }
      return `${status} ${errors.map(({ parameter, code }) => `${parameter} ${code}`)}`
    }
    for (const value of ['', '1', 'x', '1.2.3', '-1.2', '1.2%20']) {
      t.equal(await errorOf(`version=${value}`), '400 version invalid_format', value)
    }
    t.equal(await errorOf('since=start&version=1.2'), '400 version excluded_parameter')
  })
}

t.test('many changes at once: the data was not modified in the future', async (t) => {
  const { token, connection } = await addCaller(db)
  for (let change = 0; change < 30; change += 1) await lists.account.add(db, connection, {})
  const { headers } = await get(connection.account, { token })
  const [modified, date] = ['last-modified', 'date'].map((name) =>
    Date.parse(String(headers.get(name))),
  )
  t.ok(Number(modified) <= Number(date), `${headers.get('last-modified')}`)
})

t.test('clock that steps back: the next version is later than the last one', async (t) => {
  const { connection } = await addCaller(db)
  const changedAt = async () => {
    const { rows } = await sql<{ at: string }>`select extract(epoch from changed_at) * 1e6 as at
      from connection where id = ${connection.id}`.execute(db)
    return Number(rows[0]?.at)
  }
  await sql`update connection set changed_at = now() + interval '1 hour'
    where id = ${connection.id}`.execute(db)
  for (let change = 0; change < 3; change += 1) {
    const last = await changedAt()
    await lists.account.add(db, connection, {})
    const later = (await changedAt()) - last
    t.ok(later >= 1 && later <= 100_000, `${later} microseconds`)
  }
})

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
