import { sql } from 'kysely'
import t from 'tap'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { badRequests } from '../support/bad-requests.ts'
import { duringOutage } from '../support/outage.ts'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller, addConnection, addTransferOrders, type Caller, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const service = await startService(t, { logLevel: 'trace' })
const { db, get, log, port } = service

const warnings: Error[] = []
const keepWarning = (warning: Error) => warnings.push(warning)
process.on('warning', keepWarning)
t.teardown(() => process.off('warning', keepWarning))

/** Adds a caller whose connection token has a second, encoded form in a path. */
async function awkwardCaller(): Promise<Caller> {
  const caller = await addCaller(db)
  const connection = await addConnection(db, caller.appId, `sécret/${caller.connection.token} %x`)
  return { ...caller, connection }
}

const EXACT = 'application/json;IEEE754Compatible=true'

/** Sends requests of every type, valid and invalid. */
async function sendEverything({ token, connection }: Caller): Promise<void> {
  const { portfolio, account, orders } = connection
  for (const path of [portfolio, account, orders]) {
    const { headers } = await get(path, { token })
    const tag = { 'if-none-match': String(headers.get('etag')) }
    await get(path, { token, headers: tag })
    await get(path, { token, method: 'HEAD' })
    await get(path, { token, method: 'POST' })
    await get(`${path}?limit=x&${token}=${connection.token}`, { token })
    await get(`${path}/${token}`, { token })
    await get(path, { token: connection.token.replace(/[^a-z0-9]/g, '') })
    await get(path, { token, headers: { 'x-client-trace-id': token, referer: path } })
    await get(`${path}?since=start`, { token })
    await get(`${path}?since=${token}&version=${token}`, { token })
    await get(path, { token, headers: { accept: `${EXACT}, text/${token}` } })
    for (const accept of ['application/x-ndjson', 'text/csv']) {
      // With hidden rows, the export has fewer than its total, and is cut.
      const headers = { accept, 'accept-encoding': 'identity' }
      await get(path, { token, headers }).catch(() => {})
    }
    // Tokens exchanged, and a token with one more character.
    await get(path.replace(encodeURIComponent(connection.token), token), { token })
    await get(path, { token: `${token}x` })
    await get(path)
    await get(`/%zz${path}`, { token })
  }
}

t.test('log at every level: no app token and no connection token (contract 21)', async (t) => {
  const callers = [await addCaller(db), await awkwardCaller()]
  const [plain] = callers as [Caller, Caller]
  for (const caller of callers) {
    await lists.portfolio.add(db, caller.connection, {})
    await addTransferOrders(db, caller.connection, {})
    await sendEverything(caller)
  }
  for (const { bytes } of badRequests(plain)) await sendRaw({ port, bytes })

  // Internal errors with messages of PostgreSQL, and an unreachable database.
  const rule = (text: string) =>
    sql.raw(`alter policy of_the_connection on portfolio_transaction using (${text})`).execute(db)
  await rule(`current_setting('service.connection_id', true)::bigint / 0 = 1`)
  for (const caller of callers) await sendEverything(caller)
  await rule('false')
  await sql`alter table account_transaction rename to elsewhere`.execute(db)
  for (const caller of callers) await sendEverything(caller)
  await sql`alter table elsewhere rename to account_transaction`.execute(db)
  await duringOutage(t, service.databaseUrl, async () => {
    for (const caller of callers) await sendEverything(caller)
  })

  const whole = log.join('')
  t.ok(log.length > 300, 'the log is not empty')
  t.match(whole, /"status":500/)
  t.match(whole, /"status":503/)
  for (const { appId, token, connection } of callers) {
    t.ok(whole.includes(appId), 'the id of the app')
    t.notOk(whole.includes(connection.id), 'no id of a connection')
    for (const secret of [token, connection.token]) {
      const spellings = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]
      for (const spelling of spellings) t.notOk(whole.includes(spelling))
      const hash = tokenHash(secret)
      for (const base of ['hex', 'base64', 'base64url'] as const) {
        t.notOk(whole.includes(hash.toString(base)), 'no hash of a token')
      }
    }
  }
  t.notOk(whole.includes('a'.repeat(1_000)), 'no long token')
  const { password } = new URL(String(service.config.DATABASE_URL))
  t.notOk(whole.includes(password), 'no password of the database')
  t.same(warnings, [], 'no warning of Node.js outside of the log')
})
