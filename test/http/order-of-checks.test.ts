import t from 'tap'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller, addresses, addToken } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)
const { appId, token, connection } = await addCaller(db)
const expired = await addToken(db, appId, { expires_at: new Date(0) })
const revoked = await addToken(db, appId, { revoked_at: new Date(0) })

const mine = [connection.portfolio, connection.account, connection.orders]
const unknown = Object.values(addresses('nobody-has-this'))

t.test('401: comes before 400 and 404 (contract 1)', async (t) => {
  for (const path of [...mine, ...unknown]) {
    const faulty = `${path}?limit=1e3&nonsense=1`
    isProblem(t, await get(faulty), 'missing_credentials')
    isProblem(t, await get(faulty, { headers: { authorization: 'x' } }), 'malformed_credentials')
    isProblem(t, await get(faulty, { token: 'x' }), 'invalid_token')
    isProblem(t, await get(faulty, { token: revoked }), 'invalid_token')
    isProblem(t, await get(faulty, { token: expired }), 'expired_token')
  }
})

t.test('401: the same for an existing and an unknown connection (contract 1)', async (t) => {
  for (const options of [{}, { token: 'x' }, { token: revoked }, { token: expired }]) {
    for (const [i, path] of mine.entries()) {
      const [here, there] = [await get(path, options), await get(String(unknown[i]), options)]
      const same = (text: string) => text.replace(/"requestId":"[^"]+"/, '')
      t.equal(same(here.text), same(there.text))
    }
  }
})

t.test('401: a token revoked in between; a 400 may follow for two seconds', async (t) => {
  const revoke = (token: string) =>
    db
      .updateTable('app_token')
      .set({ revoked_at: new Date() })
      .where('token_hash', '=', tokenHash(token))
      .execute()
  const revoked = await addToken(db, appId)
  t.equal((await get(connection.orders, { token: revoked })).status, 200)
  await revoke(revoked)
  const faulty = `${connection.orders}?x=1`
  isProblem(t, await get(faulty, { token: revoked }), 'invalid_request')
  const now = performance.now.bind(performance)
  t.intercept(performance, 'now', { value: () => now() + 2_100 })
  isProblem(t, await get(faulty, { token: revoked }), 'invalid_token')
  const next = await addToken(db, appId)
  t.equal((await get(connection.orders, { token: next })).status, 200)
  await revoke(next)
  for (const path of mine) {
    isProblem(t, await get(path, { token: next }), 'invalid_token')
    isProblem(t, await get(`${path}?x=1`, { token: next }), 'invalid_token')
  }
})

t.test('400: comes before 404 (contract 1)', async (t) => {
  for (const path of unknown) {
    isProblem(t, await get(`${path}?nonsense=1`, { token }), 'invalid_request')
    isProblem(t, await get(path, { token }), 'connection_not_found')
  }
})

t.test('400, 401 and 404: come before 304 (contract 1 and 24)', async (t) => {
  const headers = { 'if-none-match': '*' }
  t.equal((await get(connection.orders, { token, headers })).status, 304)
  isProblem(t, await get(connection.orders, { token: expired, headers }), 'expired_token')
  isProblem(t, await get(`${connection.orders}?x=1`, { token, headers }), 'invalid_request')
  isProblem(t, await get(String(unknown[2]), { token, headers }), 'connection_not_found')
})
