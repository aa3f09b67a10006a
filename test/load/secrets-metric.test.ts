import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import t from 'tap'
import { seriesOf } from '../support/metrics.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { healthPortOf, startServiceProcess } from '../support/processes/service-process.ts'
import { until } from '../support/until.ts'

t.test(
  'secrets_failed: 1 from a SIGHUP with a broken file until one with a right file',
  async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'secrets-'))
    t.teardown(() => rm(folder, { recursive: true }))
    await chmod(folder, 0o755)
    const file = join(folder, 'database-url')
    const { db, login } = await openTestDatabase(t)
    const withWrongPassword = login.replace(/:[^:@]*@/, ':wrong@')
    await writeFile(file, login)
    const service = await startServiceProcess(t, { DATABASE_URL_FILE: file, LOG_LEVEL: 'info' })
    t.equal(await service.ready(), 200)
    const metrics = `http://127.0.0.1:${healthPortOf(service.port)}/metrics`
    const secretsFailed = async () =>
      seriesOf(await (await fetch(metrics)).text()).get('secrets_failed')
    const readWithUnknownToken = async () => {
      const headers = { authorization: 'Bearer unknown' }
      const url = `${service.url}/api/v1/queries/connections/none/assets-transfer`
      const { status } = await fetch(url, { headers })
      return status
    }
    let signals = 0
    const hangUp = async () => {
      service.process.kill('SIGHUP')
      signals += 1
      const lines = () => service.output().match(/"msg":"SIGHUP: /g)?.length ?? 0
      await until('the log has the result', () => lines() === signals)
    }
    t.equal(await secretsFailed(), 0)

    const broken: Record<string, () => Promise<void>> = {
      'a text that is no URL': () => writeFile(file, 'no URL'),
      'a URL with a wrong password': () => writeFile(file, withWrongPassword),
      'no file': () => rm(file),
    }
    for (const [name, breakFile] of Object.entries(broken)) {
      await breakFile()
      await hangUp()
      t.equal(await secretsFailed(), 1, name)
      t.equal(await service.ready(), 200, 'the open connections stay in use')
      await writeFile(file, login)
      await hangUp()
      t.equal(await secretsFailed(), 0, 'the file is right again')
      // SIGHUP replaces the connections: this opens the one that stays in use.
      t.equal(await readWithUnknownToken(), 401, 'a connection with the right file')
    }

    // A connection that opens after SIGHUP can read the file, and cannot use it.
    await writeFile(file, withWrongPassword)
    await hangUp()
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where usename = ${new URL(login).username}`.execute(db)
    await until('new connections fail', async () => (await readWithUnknownToken()) === 503)
    t.equal(await secretsFailed(), 1, 'after new connections have failed')
    await writeFile(file, login)
    await hangUp()
    t.equal(await secretsFailed(), 0)
    t.equal(await readWithUnknownToken(), 401, 'new connections succeed')
  },
)
