import { sql } from 'kysely'
import type { Test } from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { INVALID_QUERY } from '../../src/http/openapi/examples.ts'
import { MEDIA_TYPES } from '../../src/schemas/list.ts'
import { lists } from '../../src/schemas/lists.ts'
import { addConnection, addresses, addToken } from '../support/rows.ts'
import { DEMO_CONNECTION, DEMO_TOKEN } from '../support/seeded-service.ts'
import {
  type RequestOptions,
  type Service,
  type ServiceResponse,
  startService,
} from '../support/service.ts'

export interface OperationResponse {
  operationId: string
  response: ServiceResponse
}

interface Operation {
  operationId: string
  /** Path after the connection token. */
  path: string
  /** True if the list has pages, changes and exports. */
  hasPages: boolean
}

interface Document {
  paths: Record<string, { get: { operationId: string; responses: Record<string, object> } }>
}

/** Reads all operations from the document, so that a new list needs no line here. */
async function operationsOf({ get }: Service): Promise<Operation[]> {
  const { paths } = (await get('/openapi.json')).json() as Document
  return Object.entries(paths).map(
    ([
      path,
      {
        get: { operationId, responses },
      },
    ]) => ({
      operationId,
      path: path.slice(path.indexOf('{token}/') + '{token}/'.length),
      hasPages: '410' in responses,
    }),
  )
}

const QUOTA = 60
/** The body of its 400 is long enough to be compressed. */
const MANY_ERRORS = Array.from({ length: 20 }, (_, index) => `unknown${index}`).join('&')
const LARGE = `/api/v1/queries/connections/${DEMO.wealth.connections.large.token}`

/**
 * Gets every documented status of every operation, for every documented cause, from services with the
 * sample data. It breaks the database.
 */
export async function everyResponse(t: Test, seeded: Service): Promise<OperationResponse[]> {
  const { databaseUrl } = seeded
  const operations = await operationsOf(seeded)
  const environment = { RATE_LIMIT_PER_MINUTE: String(QUOTA) }
  const service = await startService(t, { databaseUrl, environment })
  const all: OperationResponse[] = []
  for (const operation of operations) {
    const { operationId } = operation
    const responses = await responsesOf(service, operation)
    all.push(...responses.map((response) => ({ operationId, response })))
  }
  const services = [
    await withoutQuota(service),
    await withoutDatabase(t),
    await withBrokenPolicy(t, service),
  ]
  for (const { get } of services) {
    for (const { operationId, path } of operations) {
      const response = await get(`${DEMO_CONNECTION}/${path}`, {
        token: DEMO_TOKEN,
        headers: TRACED,
      })
      all.push({ operationId, response })
    }
  }
  return all
}

/** Gets the responses that depend on the request only. */
async function responsesOf(
  { get, db }: Service,
  { path, hasPages }: Operation,
): Promise<ServiceResponse[]> {
  const { id } = await db
    .selectFrom('app')
    .select('id')
    .where('name', '=', DEMO.wealth.app)
    .executeTakeFirstOrThrow()
  const expired = await addToken(db, id, { expires_at: new Date(0) })
  const address = `${DEMO_CONNECTION}/${path}`
  const request = (options: RequestOptions, at = address) =>
    get(at, { ...options, headers: { ...TRACED, ...options.headers } })
  const token = DEMO_TOKEN
  const compressed = { token, headers: { 'accept-encoding': 'gzip' } }
  const whole = await request(compressed)
  const { token: fresh } = await addConnection(db, id)
  const neverRefreshed = `/api/v1/queries/connections/${fresh}/${path}`
  const everything = hasPages ? `${LARGE}/${path}?limit=10000` : `${LARGE}/${path}`
  return [
    whole,
    await request({ token }, everything),
    await request({ token, headers: { accept: MEDIA_TYPES.exactJson } }),
    await request({ token, headers: { accept: MEDIA_TYPES.csv } }),
    await request({ token, headers: { 'if-none-match': String(whole.headers.get('etag')) } }),
    await request({ token }, `${address}?${INVALID_QUERY}`),
    await request(compressed, `${address}?${MANY_ERRORS}`),
    await request({ token }, address.replace('DEMO', '%ff')),
    await request({}),
    await request({ token: `${token} twice` }),
    await request({ token: 'unknown' }),
    await request({ token: expired }),
    await request({ token }, address.replace('DEMO', 'NO')),
    await request({ token }, neverRefreshed),
    await request({ token, method: 'POST' }),
    ...(hasPages ? await changes(db, (at) => request({ token }, at), address) : []),
  ]
}

/** Gets the changes of a list, and the errors of a cursor and of a data version that are too old. */
async function changes(
  db: Service['db'],
  request: (address: string) => Promise<ServiceResponse>,
  address: string,
): Promise<ServiceResponse[]> {
  const first = await request(`${address}?since=start&limit=1`)
  const { nextCursor } = first.json() as { nextCursor: string }
  const move = (horizon: string) =>
    db.updateTable('connection').set({ change_horizon: horizon }).execute()
  await move(String(2n ** 60n))
  const expired = await request(`${address}?since=${nextCursor}`)
  await move('0')
  const changed = await request(`${address}?version=0.0`)
  return [first, await request(`${address}?since=${nextCursor}`), expired, changed]
}

const TRACED = { 'x-client-trace-id': 'sync-2025-03-14-0042' }

async function withoutQuota(service: Service): Promise<Service> {
  const { orders } = addresses('none')
  for (let sent = 0; sent <= QUOTA; sent += 1) await service.get(orders, { token: DEMO_TOKEN })
  return service
}

function withoutDatabase(t: Test): Promise<Service> {
  return startService(t, { environment: { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' } })
}

/** Service with a permanent error: a policy that divides by zero. */
async function withBrokenPolicy(t: Test, { databaseUrl, db }: Service): Promise<Service> {
  for (const { table } of lists) {
    await sql`create policy broken on ${sql.id(table)} as restrictive using (1 / 0 = 1)`.execute(db)
  }
  return startService(t, { databaseUrl })
}
