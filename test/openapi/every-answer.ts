import { sql } from 'kysely'
import type { Test } from 'tap'
import { DEMO } from '../../seeds/demo-world.ts'
import { INVALID_QUERY } from '../../src/schemas/problem.ts'
import { addresses, addToken } from '../support/rows.ts'
import { type Answer, type Asking, type Service, startService } from '../support/service.ts'
import { DEMO_CONNECTION, DEMO_TOKEN } from './seeded-service.ts'

/** What was answered to a request for one of the operations. */
export interface Told {
  operationId: string
  answer: Answer
}

const OPERATIONS = {
  listPortfolioTransactions: 'portfolios/transactions',
  listAccountTransactions: 'accounts/transactions',
  listAssetsTransferOrders: 'assets-transfer',
}
const QUOTA = 60
const LARGE = `/api/v1/queries/connections/${DEMO.wealth.connections.large.token}`

/**
 * Every status of every operation, with every cause that the document names, from real services over a
 * seeded database, which has a fault from then on.
 */
export async function everyAnswer(t: Test, { databaseUrl }: Service): Promise<Told[]> {
  const environment = { RATE_LIMIT_PER_MINUTE: String(QUOTA) }
  const service = await startService(t, { databaseUrl, environment })
  const told: Told[] = []
  for (const [operationId, path] of Object.entries(OPERATIONS)) {
    const answers = await answersOf(service, path)
    told.push(...answers.map((answer) => ({ operationId, answer })))
  }
  const refusing = [await spent(service), await withoutDatabase(t), await failing(t, service)]
  for (const { get } of refusing) {
    for (const [operationId, path] of Object.entries(OPERATIONS)) {
      const answer = await get(`${DEMO_CONNECTION}/${path}`, {
        token: DEMO_TOKEN,
        headers: TRACED,
      })
      told.push({ operationId, answer })
    }
  }
  return told
}

/** What depends only on the request. */
async function answersOf({ get, db }: Service, path: string): Promise<Answer[]> {
  const { id } = await db
    .selectFrom('app')
    .select('id')
    .where('name', '=', DEMO.wealth.app)
    .executeTakeFirstOrThrow()
  const expired = await addToken(db, id, { expires_at: new Date(0) })
  const address = `${DEMO_CONNECTION}/${path}`
  const ask = (asking: Asking, at = address) =>
    get(at, { ...asking, headers: { ...TRACED, ...asking.headers } })
  const token = DEMO_TOKEN
  const whole = await ask({ token, headers: { 'accept-encoding': 'gzip' } })
  const everything = path.endsWith('transactions')
    ? `${LARGE}/${path}?limit=10000`
    : `${LARGE}/${path}`
  return [
    whole,
    await ask({ token }, everything),
    await ask({ token, headers: { 'if-none-match': String(whole.headers.get('etag')) } }),
    await ask({ token }, `${address}?${INVALID_QUERY}`),
    await ask({ token }, address.replace('DEMO', '%ff')),
    await ask({}),
    await ask({ token: `${token} twice` }),
    await ask({ token: 'unknown' }),
    await ask({ token: expired }),
    await ask({ token }, address.replace('DEMO', 'NO')),
    await ask({ token, method: 'POST' }),
  ]
}

/** Every answer to this has it back. */
const TRACED = { 'x-client-trace-id': 'sync-2025-03-14-0042' }

async function spent(service: Service): Promise<Service> {
  const { orders } = addresses('none')
  for (let sent = 0; sent <= QUOTA; sent += 1) await service.get(orders, { token: DEMO_TOKEN })
  return service
}

function withoutDatabase(t: Test): Promise<Service> {
  return startService(t, { environment: { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' } })
}

/** A fault that is none of the passing ones: a policy that divides by zero. */
async function failing(t: Test, { databaseUrl, db }: Service): Promise<Service> {
  for (const table of ['portfolio_transaction', 'account_transaction', 'assets_transfer_order']) {
    await sql`create policy fault on ${sql.id(table)} as restrictive using (1 / 0 = 1)`.execute(db)
  }
  return startService(t, { databaseUrl })
}
