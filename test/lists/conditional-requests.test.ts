import { hash } from 'node:crypto'
import { sql } from 'kysely'
import t from 'tap'
import { withReferences } from '../../src/schemas/fields.ts'
import { lists as definitions } from '../../src/schemas/lists.ts'
import { addCaller, addConnection, addTransferOrders, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)
const endpoints = ['portfolio', 'account', 'orders'] as const

async function filled() {
  const caller = await addCaller(db)
  await lists.portfolio.add(db, caller.connection, {}, {})
  await lists.account.add(db, caller.connection, {}, {})
  await addTransferOrders(db, caller.connection, {}, {})
  return caller
}

for (const endpoint of endpoints) {
  t.test(`${endpoint}: ETag, Last-Modified and Cache-Control (contract 24)`, async (t) => {
    const { token, connection } = await filled()
    const { headers } = await get(connection[endpoint], { token })
    t.match(headers.get('etag'), /^W\/"[!#-~]+"$/, 'weak')
    t.equal(headers.get('cache-control'), 'private, no-cache')
    const { changed_at } = await db
      .selectFrom('connection')
      .where('id', '=', connection.id)
      .select('changed_at')
      .executeTakeFirstOrThrow()
    t.equal(headers.get('last-modified'), changed_at.toUTCString())
  })

  t.test(`${endpoint}: 304 without a body if nothing changed (contract 24)`, async (t) => {
    const { token, connection } = await filled()
    const full = await get(connection[endpoint], { token })
    const tag = String(full.headers.get('etag'))
    const same = [
      tag,
      tag.slice(2),
      '*',
      ' * ',
      `"a", ${tag}`,
      `${tag}, W/"b"`,
      `"x,y" ,${tag},`,
      `W/"a",W/"b",${tag}`,
      `${tag.replace(/"\d+/, '"0')}, `.repeat(100) + tag,
    ]
    for (const known of same) {
      const response = await get(connection[endpoint], {
        token,
        headers: { 'if-none-match': known },
      })
      t.equal(response.status, 304, known.slice(0, 80))
      t.equal(response.text, '')
      for (const name of ['etag', 'last-modified', 'cache-control']) {
        t.equal(response.headers.get(name), full.headers.get(name), name)
      }
      t.equal(response.headers.get('link'), null)
    }
  })

  t.test(`${endpoint}: 200 if If-None-Match has other values (contract 24)`, async (t) => {
    const { token, connection } = await filled()
    const tag = String((await get(connection[endpoint], { token })).headers.get('etag'))
    const [, value = ''] = /"(.*)"/.exec(tag) ?? []
    const others = [
      '',
      '"',
      '""',
      'W/""',
      '"a"',
      value,
      `"${value}x"`,
      `"x${value}"`,
      `w"${value}`,
      `"${value.toUpperCase()}!"`,
      '"*"',
      '*, "a"',
      '**',
      'W/*',
      '"0.0-"',
      `"${'9'.repeat(5_000)}"`,
      '"a",'.repeat(2_000),
    ]
    for (const other of others) {
      const response = await get(connection[endpoint], {
        token,
        headers: { 'if-none-match': other },
      })
      t.equal(response.status, 200, other.slice(0, 60))
      t.equal(response.headers.get('etag'), tag, 'the ETag is unchanged')
    }
  })

  t.test(
    `${endpoint}: every change of the connection's rows changes the ETag (contract 24)`,
    async (t) => {
      const { token, connection } = await filled()
      const table = {
        portfolio: lists.portfolio.table,
        account: lists.account.table,
        orders: 'assets_transfer_order',
      } as const
      const own = table[endpoint]
      const changes = {
        insert: () =>
          endpoint === 'orders'
            ? addTransferOrders(db, connection, {})
            : lists[endpoint].add(db, connection, {}),
        update: () =>
          db
            .updateTable(own as 'portfolio_transaction')
            .set({ amount: '2.50' })
            .where('connection_id', '=', connection.id)
            .execute(),
        delete: () => db.deleteFrom(own).where('connection_id', '=', connection.id).execute(),
      }
      let known = await get(connection[endpoint], { token })
      for (const [name, change] of Object.entries(changes)) {
        await change()
        const headers = { 'if-none-match': String(known.headers.get('etag')) }
        const response = await get(connection[endpoint], { token, headers })
        t.equal(response.status, 200, name)
        t.not(response.text, known.text)
        t.not(response.headers.get('etag'), known.headers.get('etag'))
        const times = [known, response].map((each) =>
          Date.parse(`${each.headers.get('last-modified')}`),
        )
        t.ok(Number(times[0]) <= Number(times[1]), 'Last-Modified does not go back')
        known = response
      }
    },
  )
}

t.test('304: only for the route, query and version of the ETag (contract 24)', async (t) => {
  const { appId, token, connection } = await filled()
  const empty = await addConnection(db, appId)
  const addresses = [
    connection.portfolio,
    `${connection.portfolio}?limit=1`,
    `${connection.portfolio}?limit=1&page=1`,
    `${connection.portfolio}?from=2025-01-01`,
    `${connection.portfolio}?to=2025-01-01`,
    connection.account,
    connection.orders,
    empty.portfolio,
    empty.orders,
  ]
  const tags = new Map<string, string>()
  for (const path of addresses) {
    tags.set(path, String((await get(path, { token })).headers.get('etag')))
  }
  t.equal(new Set(tags.values()).size, addresses.length)
  for (const path of addresses) {
    for (const [other, tag] of tags) {
      const response = await get(path, { token, headers: { 'if-none-match': tag } })
      t.equal(response.status, path === other ? 304 : 200)
    }
  }
})

t.test('304: the data version has many digits (contract 24)', async (t) => {
  const { token, connection } = await filled()
  for (const version of ['10', '9223372036854775807']) {
    await sql`update connection set data_version = ${version}::bigint
      where id = ${connection.id}::bigint`.execute(db)
    const { headers } = await get(connection.portfolio, { token })
    t.match(headers.get('data-version'), `${version}.`)
    const known = { 'if-none-match': String(headers.get('etag')) }
    t.equal((await get(connection.portfolio, { token, headers: known })).status, 304)
  }
})

t.test('304: rows of other connections changed (contract 24)', async (t) => {
  const { appId, token, connection } = await filled()
  const before = await get(connection.portfolio, { token })
  const sibling = await addConnection(db, appId)
  await lists.portfolio.add(db, sibling, {})
  await lists.account.add(db, sibling, {})
  await filled()
  const headers = { 'if-none-match': String(before.headers.get('etag')) }
  t.equal((await get(connection.portfolio, { token, headers })).status, 304)
})

t.test('304: a change was rolled back (contract 24)', async (t) => {
  const { token, connection } = await filled()
  const before = await get(connection.portfolio, { token })
  const undone = db.transaction().execute(async (trx) => {
    await lists.portfolio.add(trx, connection, {})
    throw new Error('undone')
  })
  await t.rejects(undone, { message: 'undone' })
  const headers = { 'if-none-match': String(before.headers.get('etag')) }
  t.equal((await get(connection.portfolio, { token, headers })).status, 304)
})

t.test('ETag: it does not depend on the connection token or the path (contract 24)', async (t) => {
  const { appId, token, connection } = await filled()
  const other = await addConnection(db, appId, `another token ${connection.token}`)
  const state = { data_version: '7', changed_at: '2025-03-14T15:42:07.123456Z' }
  for (const { id } of [connection, other]) {
    const update = (set: unknown) => sql`update connection set ${set} where id = ${id}`.execute(db)
    await update(sql`data_version = ${state.data_version}`)
    await update(sql`changed_at = ${state.changed_at}`)
  }
  const etagOf = async (path: string) => (await get(path, { token })).headers.get('etag')
  t.equal(await etagOf(connection.portfolio), await etagOf(other.portfolio))
  t.equal(await etagOf(`${connection.orders}`), await etagOf(`${other.orders}?`))
  t.not(await etagOf(connection.portfolio), await etagOf(connection.account))
  t.match(await etagOf(connection.portfolio), /^W\/"7\.1741966927123456-/)
  t.equal(
    await etagOf(`${connection.account}?limit=5`),
    await etagOf(`${other.account}?page=0&limit=5`),
  )
  t.not(
    await etagOf(`${connection.account}?limit=5`),
    await etagOf(`${connection.account}?limit=6`),
  )
})

/**
 * Digests of the response schemas of a list by its `revision`, without texts. With another digest, the bytes of a response may
 * have changed: increment the `revision` in src/schemas, so that no client keeps the old ones, and add the digest here.
 */
const DIGESTS: Record<string, Record<number, string>> = {
  'portfolio-transactions': { 1: '067a3ab0ec53e69f' },
  'account-transactions': { 1: '817401b8fbbeadd3' },
  'transfer-orders': { 1: '05ce22ae402d1eda' },
}

const TEXTS = ['title', 'description', 'examples', 'x-enum-descriptions', 'x-share-impact']

for (const { name, revision, response, exact } of definitions)
  t.test(
    `ETag of ${name}: its revision changes with the response schemas (contract 24)`,
    async (t) => {
      const schemas = withReferences([response, exact.response])
      const shapes = JSON.stringify(schemas, (keyword, value) =>
        // A field may have the name `description`, too.
        TEXTS.includes(keyword) && (keyword !== 'description' || typeof value === 'string')
          ? undefined
          : value,
      )
      t.equal(hash('sha256', shapes).slice(0, 16), DIGESTS[name]?.[revision])
    },
  )

t.test('data version', async (t) => {
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
})
