import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createDatabase } from '../database.ts'
import { loginOfService, openAsOwner } from '../logins.ts'
import { freePort } from './free-port.ts'
import { startProgram, until } from './program.ts'

t.test(
  'An instance is ready although the next release lies where it was started from',
  async (t) => {
    const { url } = await createDatabase(t)
    const login = await loginOfService(t, openAsOwner(t, url), url)
    const folder = await mkdtemp(join(tmpdir(), 'release-'))
    t.teardown(() => rm(folder, { recursive: true }))
    for (const part of ['package.json', 'migrations', 'src'])
      await cp(part, join(folder, part), { recursive: true })
    await symlink(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'))

    const port = await freePort()
    const { end } = await startProgram(t, {
      command: process.execPath,
      package: 'nodejs',
      args: ['--disable-warning=ExperimentalWarning', join(folder, 'src/server.ts')],
      environment: { DATABASE_URL: login, PORT: String(port) },
    })
    const ready = () =>
      fetch(`http://127.0.0.1:${port}/health/ready`).then(
        ({ status }) => status,
        () => 0,
      )
    await until('the service is ready', async () => (await ready()) === 200)
    const migration = 'export const up = async () => {}\n'
    await writeFile(join(folder, 'migrations/9999-of-the-next-release.ts'), migration)
    // Longer than one look at the schema is good for.
    await sleep(500)
    t.equal(await ready(), 200)
    t.equal(await end('SIGINT'), 0)
  },
)
