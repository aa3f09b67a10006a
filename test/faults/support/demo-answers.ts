import pg from 'pg'
import type { Test } from 'tap'
import { DEMO } from '../../../seeds/sample-data.ts'
import { seed } from '../../../seeds/seed.ts'
import { addresses } from '../../support/rows.ts'
import { type Service, type ServiceResponse, startService } from '../../support/service.ts'

export async function seedDemo(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  await seed(pool).finally(() => pool.end())
}

/** What anybody may ask about the sample data: all endpoints, tokens that fit and that do not. */
export const demoRequests: { path: string; token: string }[] = Object.values(DEMO).flatMap((app) =>
  ['DEMOLARGE1', 'DEMOSMALL1', 'DEMOEMPTY1', 'DEMOOTHER1'].flatMap((connection) => {
    const { portfolio, account, orders } = addresses(connection)
    const lists = [portfolio, account].flatMap((list) =>
      ['', '?limit=7&page=3', '?from=2025-06-01&limit=20', '?limit=10000', '?limit=0'].map(
        (query) => list + query,
      ),
    )
    return [orders, ...lists].map((path) => ({ path, token: app.token }))
  }),
)

/** All of an answer that two instances have in common. */
interface Told {
  status: number
  etag: string | null
  link: string | null
  text: string
}

function told({ status, headers, text }: ServiceResponse): Told {
  // The request's identifier is its own.
  const same = status === 200 ? text : text.replace(/"requestId":"[^"]*"/, '')
  return { status, etag: headers.get('etag'), link: headers.get('link'), text: same }
}

/** What a service says to each of the requests, one after the other. */
export async function tellAll(service: Pick<Service, 'get'>): Promise<Told[]> {
  const all: Told[] = []
  for (const { path, token } of demoRequests) all.push(told(await service.get(path, { token })))
  return all
}

/** A question about the sample data, and what has to be answered. */
export interface KnownDemo {
  path: string
  token: string
  status: number
  text: string
}

/** The truth about the sample data; without the errors, whose identifier is another one each time. */
export async function learnDemo(t: Test, databaseUrl: string): Promise<KnownDemo[]> {
  const service = await startService(t, { databaseUrl })
  const all: KnownDemo[] = []
  for (const { path, token } of demoRequests) {
    const { status, text } = await service.get(path, { token })
    if (status === 200) all.push({ path, token, status, text })
  }
  await service.close()
  return all
}
