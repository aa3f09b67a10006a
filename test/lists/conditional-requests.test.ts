import { hash } from 'node:crypto'
import { sql } from 'kysely'
import t from 'tap'
import { RESPONSE_REVISION } from '../../src/http/representation.ts'
import { lists as definitions } from '../../src/schemas/lists.ts'
import { addCaller, addConnection, addTransferOrders, lists } from '../support/rows.ts'
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
 * Digest of the response schemas by revision, without texts. With another digest, the bytes of a response may have
 * changed: increment RESPONSE_REVISION, so that no client keeps the old ones, and add the digest here.
 */
const DIGESTS: Record<number, string> = { 1: '0e311f7353cd3364' }

t.test('ETag: its revision changes with the response schemas (contract 24)', async (t) => {
  const texts = ['title', 'description', 'examples', 'x-enum-descriptions', 'x-share-impact']
  const schemas = definitions.map(({ item, response }) => [item, response])
  const shapes = JSON.stringify(schemas, (name, value) =>
    texts.includes(name) && (name !== 'description' || typeof value === 'string')
      ? undefined
      : value,
  )
  t.equal(hash('sha256', shapes).slice(0, 16), DIGESTS[RESPONSE_REVISION])
})
