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

/** A caller whose connection token is no plain word, and so has a second spelling in an address. */
async function awkwardCaller(): Promise<Caller> {
  const caller = await addCaller(db)
  const connection = await addConnection(db, caller.appId, `sécret/${caller.connection.token} %x`)
  return { ...caller, connection }
}

/** Asks in every way that has an answer of its own, good and bad. */
async function askEverything({ token, connection }: Caller): Promise<void> {
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
    // The wrong way round, and with what is almost a token.
    await get(path.replace(encodeURIComponent(connection.token), token), { token })
    await get(path, { token: `${token}x` })
    await get(path)
    await get(`/%zz${path}`, { token })
  }
}

t.test(
  'No token of either kind is in any line of the log, at any level (contract 21)',
  async (t) => {
    const callers = [await addCaller(db), await awkwardCaller()]
    const [plain] = callers as [Caller, Caller]
    for (const caller of callers) {
      await lists.portfolio.add(db, caller.connection, {})
      await addTransferOrders(db, caller.connection, {})
      await askEverything(caller)
    }
    for (const { bytes } of badRequests(plain)) await sendRaw({ port, bytes })

    // What is logged as a fault: the database's own messages, and a database that is not there.
    const rule = (text: string) =>
      sql.raw(`alter policy of_the_connection on portfolio_transaction using (${text})`).execute(db)
    await rule(`current_setting('service.connection_id', true)::bigint / 0 = 1`)
    for (const caller of callers) await askEverything(caller)
    await rule('false')
    await sql`alter table account_transaction rename to elsewhere`.execute(db)
    for (const caller of callers) await askEverything(caller)
    await sql`alter table elsewhere rename to account_transaction`.execute(db)
    await duringOutage(t, service.databaseUrl, async () => {
      for (const caller of callers) await askEverything(caller)
    })

    const whole = log.join('')
    t.ok(log.length > 300, 'there is a log to look at')
    t.match(whole, /"status":500/)
    t.match(whole, /"status":503/)
    for (const { token, connection } of callers) {
      for (const secret of [token, connection.token]) {
        const spellings = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]
        for (const spelling of spellings) t.notOk(whole.includes(spelling))
        const hash = tokenHash(secret)
        for (const base of ['hex', 'base64', 'base64url'] as const) {
          t.notOk(whole.includes(hash.toString(base)), 'nor its hash')
        }
      }
    }
    t.notOk(whole.includes('a'.repeat(1_000)), 'nor a token of 10 KB')
    const { password } = new URL(String(service.config.DATABASE_URL))
    t.notOk(whole.includes(password), 'nor the password of the database')
  },
)
