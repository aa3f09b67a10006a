import t from 'tap'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { addCaller, addToken } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

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
