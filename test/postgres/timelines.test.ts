import t from 'tap'
import { findServers } from '../../src/postgres/connect.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'

const { url } = await createDatabase(t)
const db = openAsOwner(t, url)

t.test('the role of the service may read cluster and timeline', async (t) => {
  const login = await loginOfService(t, db, url)
  const options = { waitMs: 5_000, statementTimeoutMs: 5_000, pooler: false }
  const client = await openClient(t, url)
  const { rows } = await client.query(`
    select system_identifier::text as cluster, timeline_id as timeline,
      pg_postmaster_start_time()::text as started
    from pg_control_system(), pg_control_checkpoint()`)
  t.same(await findServers(options, [login], 0), [{ url: login, ...rows[0] }])
})
