import type { Test } from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { seed } from '../../seeds/seed.ts'
import { openPool } from '../support/database.ts'
import { type Service, type ServiceOptions, startService } from '../support/service.ts'

/** App token of the sample data, and the connection that the documentation shows. */
export const { token: DEMO_TOKEN } = DEMO.wealth
export const DEMO_CONNECTION = `/api/v1/queries/connections/${DEMO.wealth.connections.small.token}`

/** Starts the service with the sample data. */
export async function startSeededService(t: Test, options?: ServiceOptions): Promise<Service> {
  const service = await startService(t, options)
  await seed(openPool(t, service.databaseUrl))
  return service
}
