import { sql } from 'kysely'
import t from 'tap'
import { bind } from '../../src/postgres/statements.ts'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { lookupStatements } from '../../src/queries/read.ts'
import { openClient } from '../support/database.ts'
import { isProblem } from '../support/problem.ts'
import { addApp, addCaller, addToken } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { valuesFor } from '../support/statements.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const service = await startService(t)
const { db, get } = service
const { appId, token, connection } = await addCaller(db)
const endpoints = [connection.portfolio, connection.account, connection.orders]

const BARE = 'Bearer realm="investment data"'
const INVALID = `${BARE}, error="invalid_token"`

t.test('200: a valid token reaches all three endpoints (section 5, contract 20)', async (t) => {
  for (const path of endpoints) t.equal((await get(path, { token })).status, 200)
})

t.test('200: the scheme in any case, with several spaces (RFC 7235)', async (t) => {
  for (const authorization of [`bearer ${token}`, `BEARER ${token}`, `Bearer    ${token}`]) {
    t.equal((await get(connection.orders, { headers: { authorization } })).status, 200)
  }
})

t.test(
  '401 for a token that worked: its requests count as those of an unknown caller',
  async (t) => {
    const revoked = await addToken(db, appId)
    const key = tokenHash(revoked).toString('hex')
    const { tenants } = service.limits
    t.equal((await get(connection.orders, { token: revoked })).status, 200)
    t.equal(tenants.of('127.0.0.1', key).appId, appId)
    await db
      .updateTable('app_token')
      .set({ revoked_at: new Date() })
      .where('token_hash', '=', tokenHash(revoked))
      .execute()
    t.equal((await get(connection.orders, { token: revoked })).status, 401)
    t.equal(tenants.of('127.0.0.1', key).appId, undefined, 'it uses no share of the app')
    t.equal((await get(connection.orders, { token })).status, 200)
    t.equal(tenants.of('127.0.0.1', tokenHash(token).toString('hex')).appId, appId)
  },
)

t.test('401 missing_credentials: no Authorization header (contract 17)', async (t) => {
  for (const path of endpoints) {
    const response = await get(path)
    isProblem(t, response, 'missing_credentials')
    t.equal(response.headers.get('www-authenticate'), BARE, 'no error without a token')
  }
})

t.test('401 malformed_credentials: anything but Bearer and one token (contract 17)', async (t) => {
  const others = [
    'Bearer',
    'Bearer ',
    token,
    `Basic ${token}`,
    `Bearer ${token} ${token}`,
    `Bearer ${token}, Bearer ${token}`,
    `Bearer "${token}"`,
    `Bearer=${token}`,
    'Bearer \u00e9',
  ]
  for (const authorization of others) {
    const response = await get(connection.orders, { headers: { authorization } })
    isProblem(t, response, 'malformed_credentials', authorization.replaceAll(token, '<token>'))
    t.equal(response.headers.get('www-authenticate'), BARE, 'no error without a token')
  }
})

t.test('401 invalid_token: an unknown token (contract 17)', async (t) => {
  const last = token.at(-1) === 'A' ? 'B' : 'A'
  const unknown = [
    'x',
    token.slice(0, -1),
    token.slice(0, -1) + last,
    `${token}A`,
    connection.token,
  ]
  for (const path of endpoints) {
    for (const other of unknown) {
      const response = await get(path, { token: other })
      isProblem(t, response, 'invalid_token')
      t.equal(response.headers.get('www-authenticate'), INVALID)
    }
  }
})

t.test('401 expired_token: from the moment of expiry, and not before (contract 20)', async (t) => {
  const in_an_hour = await addToken(db, appId, { expires_at: new Date(Date.now() + 3_600_000) })
  t.equal((await get(connection.orders, { token: in_an_hour })).status, 200)

  const past = await addToken(db, appId, { expires_at: new Date(Date.now() - 1_000) })
  for (const path of endpoints) {
    const response = await get(path, { token: past })
    isProblem(t, response, 'expired_token')
    t.equal(response.headers.get('www-authenticate'), INVALID)
  }
})

t.test('token at its moment of expiry: expired (contract 20)', async (t) => {
  const owner = await openClient(t, service.databaseUrl)
  const token = await addToken(db, appId)
  // now() does not advance within a transaction.
  await owner.query('begin')
  for (const [moment, expired] of [
    [`now() - interval '1 microsecond'`, true],
    ['now()', true],
    [`now() + interval '1 microsecond'`, false],
  ]) {
    await owner.query(`update app_token set expires_at = ${moment} where token_hash = $1`, [
      tokenHash(token),
    ])
    const statement = lookupStatements.tokenHash
    const values = bind(statement, valuesFor({ token }, 'unknown'))
    const { rows } = await owner.query(statement.text, values)
    t.match(rows, withLengths([{ app_id: appId, expired }]), String(moment))
  }
  await owner.query('rollback')
})

t.test('401: expiry and revocation take effect with the next request (contract 20)', async (t) => {
  const first = await addToken(db, appId)
  const second = await addToken(db, appId)
  for (const path of endpoints) {
    t.equal((await get(path, { token: first })).status, 200)
    t.equal((await get(path, { token: second })).status, 200)
  }
  const set = (column: 'expires_at' | 'revoked_at', of: string) =>
    db
      .updateTable('app_token')
      .set({ [column]: new Date(Date.now() - 1_000) })
      .where('token_hash', '=', tokenHash(of))
      .execute()
  await set('expires_at', first)
  await set('revoked_at', second)
  for (const path of endpoints) {
    isProblem(t, await get(path, { token: first }), 'expired_token')
    isProblem(t, await get(path, { token: second }), 'invalid_token', 'a revoked token is invalid')
  }
  t.equal(
    (await get(connection.orders, { token })).status,
    200,
    "the app's other token still works",
  )
})

t.test('401 invalid_token: a revoked and expired token (contract 17)', async (t) => {
  const past = new Date(Date.now() - 1_000)
  const both = await addToken(db, appId, { expires_at: past, revoked_at: past })
  isProblem(t, await get(connection.orders, { token: both }), 'invalid_token')
})

t.test('200: several tokens of an app are valid at once (contract 20)', async (t) => {
  const tokens = [token, await addToken(db, appId), await addToken(db, appId)]
  for (const each of tokens) t.equal((await get(connection.orders, { token: each })).status, 200)
})

t.test('404: connection of another app (section 5.3)', async (t) => {
  const stranger = await addToken(db, await addApp(db))
  for (const path of endpoints) {
    isProblem(t, await get(path, { token: stranger }), 'connection_not_found')
  }
})

t.test('stored tokens: only their SHA-256 (contract 20 and 21)', async (t) => {
  const { rows } = await sql<{ stored: string }>`
    select to_jsonb(t)::text as stored from app_token t
    union all select to_jsonb(c)::text from connection c`.execute(db)
  const stored = rows.map((row) => row.stored).join('\n')
  for (const secret of [token, connection.token]) {
    t.notOk(stored.includes(secret), 'as text')
    t.notOk(stored.includes(Buffer.from(secret).toString('hex')), 'as bytes')
    t.ok(stored.includes(tokenHash(secret).toString('hex')))
  }
})

t.test('200: every request during a token rotation, on two instances', async (t) => {
  const one = await startService(t)
  const two = await startService(t, { databaseUrl: one.databaseUrl })
  const { appId, token: old, connection } = await addCaller(one.db)
  const send = (token: string) =>
    Promise.all([one, two].map((service) => service.get(connection.orders, { token })))

  let current = old
  let stopped = false
  const statuses: number[] = []
  const client = (async () => {
    while (!stopped) statuses.push(...(await send(current)).map(({ status }) => status))
  })()

  const next = await addToken(one.db, appId)
  for (const token of [old, next]) {
    t.same(
      (await send(token)).map(({ status }) => status),
      [200, 200],
      'both tokens are valid',
    )
  }
  current = next
  // Requests in flight with the old token must end before its revocation.
  const seen = statuses.length
  await until('requests in flight have ended', () => statuses.length >= seen + 4)
  await one.db
    .updateTable('app_token')
    .set({ revoked_at: new Date() })
    .where('token_hash', '=', tokenHash(old))
    .execute()
  t.same(
    (await send(old)).map((response) => [response.status, response.json().code]),
    [
      [401, 'invalid_token'],
      [401, 'invalid_token'],
    ],
    'the old token is invalid at once, on both',
  )
  t.same(
    (await send(next)).map(({ status }) => status),
    [200, 200],
  )
  stopped = true
  await client
  t.same([...new Set(statuses)], [200], `${statuses.length} requests meanwhile`)
})

t.test('401: a token from the moment of its expiry, on two instances', async (t) => {
  const one = await startService(t)
  const two = await startService(t, { databaseUrl: one.databaseUrl })
  const { token, connection } = await addCaller(one.db)
  const codes = async () => {
    const requests = [one, two].map((service) => service.get(connection.orders, { token }))
    return (await Promise.all(requests)).map((response) => response.json().code)
  }
  const expire = (expires_at: Date | null) =>
    one.db.updateTable('app_token').set({ expires_at }).execute()

  await expire(new Date(Date.now() + 60_000))
  t.same(await codes(), [undefined, undefined])
  await expire(new Date(Date.now() - 1))
  t.same(await codes(), ['expired_token', 'expired_token'])
  await expire(null)
  t.same(await codes(), [undefined, undefined])
})
