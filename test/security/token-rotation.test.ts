import t from 'tap'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { addCaller, addToken } from '../support/rows.ts'
import { startService } from '../support/service.ts'

t.test('a token is rotated without one refused request, on two instances', async (t) => {
  const one = await startService(t)
  const two = await startService(t, { databaseUrl: one.databaseUrl })
  const { appId, token: old, connection } = await addCaller(one.db)
  const ask = (token: string) =>
    Promise.all([one, two].map((service) => service.get(connection.orders, { token })))

  let current = old
  let stopped = false
  const statuses: number[] = []
  const client = (async () => {
    while (!stopped) statuses.push(...(await ask(current)).map(({ status }) => status))
  })()

  const next = await addToken(one.db, appId)
  for (const token of [old, next]) {
    t.same(
      (await ask(token)).map(({ status }) => status),
      [200, 200],
      'both hold',
    )
  }
  current = next
  // A request that is under way with the old token may end before it is revoked.
  const seen = statuses.length
  while (statuses.length < seen + 4) await ask(next)
  await one.db
    .updateTable('app_token')
    .set({ revoked_at: new Date() })
    .where('token_hash', '=', tokenHash(old))
    .execute()
  t.same(
    (await ask(old)).map((answer) => [answer.status, answer.json().code]),
    [
      [401, 'invalid_token'],
      [401, 'invalid_token'],
    ],
    'the old one ends at once, on both',
  )
  t.same(
    (await ask(next)).map(({ status }) => status),
    [200, 200],
  )
  stopped = true
  await client
  t.same([...new Set(statuses)], [200], `${statuses.length} requests meanwhile`)
})

t.test('a token that expires is refused from that moment on, on two instances', async (t) => {
  const one = await startService(t)
  const two = await startService(t, { databaseUrl: one.databaseUrl })
  const { token, connection } = await addCaller(one.db)
  const codes = async () => {
    const ask = [one, two].map((service) => service.get(connection.orders, { token }))
    return (await Promise.all(ask)).map((answer) => answer.json().code)
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
