import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { until } from '../../support/until.ts'
import { addMigration, copyRelease } from '../support/processes/release.ts'
import { launchService } from '../support/processes/service-process.ts'

t.test(
  'An instance is ready although the next release lies where it was started from',
  async (t) => {
    const { url } = await createDatabase(t)
    const login = await loginOfService(t, openAsOwner(t, url), url)
    const release = await copyRelease(t)
    const port = await freePort()
    const { end } = await launchService(t, { DATABASE_URL: login, PORT: String(port) }, release)
    const ready = () =>
      fetch(`http://127.0.0.1:${port}/health/ready`).then(
        ({ status }) => status,
        () => 0,
      )
    await until('the service is ready', async () => (await ready()) === 200)
    await addMigration(release, '9999-of-the-next-release')
    // Longer than one look at the schema is good for.
    await sleep(500)
    t.equal(await ready(), 200)
    t.equal(await end('SIGINT'), 0)
  },
)
