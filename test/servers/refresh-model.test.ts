import t from 'tap'
import { checkRefreshes } from '../support/refresh-model.ts'
import { startPgBouncer } from '../support/servers/pgbouncer.ts'

t.test('4 processes, SIGKILL and lost sessions: results are true, copies are equal', async (t) => {
  await checkRefreshes(t, { processes: 4, lines: 1_000, faults: 40 })
})

for (const mode of ['session', 'transaction'] as const)
  t.test(`the same behind PgBouncer in ${mode} mode`, async (t) => {
    const through = async (url: string) => {
      const bouncer = await startPgBouncer(t, url, 20, mode)
      return bouncer.through(url)
    }
    // Debian 12 has PgBouncer 1.18, which supports no prepared statements.
    const pooled = { DATABASE_POOLER: 'true' }
    const environment = mode === 'transaction' ? pooled : {}
    await checkRefreshes(t, { processes: 2, lines: 150, faults: 15, through, environment })
  })
