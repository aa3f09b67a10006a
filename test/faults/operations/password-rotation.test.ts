import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { operatorHere } from '../../operator/operator-process.ts'
import { databaseUrl } from '../../support/template.ts'
import { codeBlocks, inlineCommand } from '../support/documented-commands.ts'
import { recordDemo, seedDemo } from '../support/golden-responses.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import { type Instance, startInstance } from '../support/processes/instances.ts'
import { runShell } from '../support/processes/shell.ts'
import {
  firstValue,
  migrate,
  roleSettings,
  startDebianPostgres,
} from '../support/servers/debian-postgres.ts'
import { startHaproxy } from '../support/servers/proxies.ts'

const [secondLogin = ''] = codeBlocks("Rotate the service's password")
const folder = await mkdtemp(join(tmpdir(), 'rotation-'))
t.teardown(() => rm(folder, { recursive: true }))
const server = await startDebianPostgres(t)
await firstValue(server.url, 'create database investments')
const url = databaseUrl(server.url, 'investments')
const oldLogin = await migrate(url)
await seedDemo(url)
const golden = await recordDemo(t, url)

t.test('200: the documented steps change the password, no request fails', async (t) => {
  const options = { environment: { DATABASE_URL: oldLogin } }
  const instances = [await startInstance(t, options), await startInstance(t, options)] as const
  const proxy = await startHaproxy(t, [instances[0].port, instances[1].port])
  const stop = startGoldenLoad(t, { url: proxy.url, golden, clients: 8, pauseMs: 20 })

  await writeFile(join(folder, 'second-login.sql'), secondLogin)
  const psql = `psql ${url} --set ON_ERROR_STOP=1 --file ${folder}/second-login.sql`
  // psql asks for the new password twice.
  await runShell(t, psql, {}, 'of-b\nof-b\n')
  const login = loginAs('investment_service_b', 'of-b')
  const settings = await roleSettings(url, 'investment_service')
  t.same(await roleSettings(url, 'investment_service_b'), settings)
  await restartWith(instances, login)
  await firstValue(url, inlineCommand('alter role investment_service nologin'))
  await t.rejects(firstValue(oldLogin, 'select'), { code: '28000' }, 'the old login is disabled')

  const environment = { DATABASE_URL: url, SERVICE_DATABASE_PASSWORD: 'the-new-one' }
  t.equal((await operatorHere(['migrate'], environment)).code, 0)
  await restartWith(instances, loginAs('investment_service', 'the-new-one'))
  await firstValue(url, 'alter role investment_service_b nologin')
  await t.rejects(firstValue(login, 'select'), { code: '28000' })
  await t.rejects(firstValue(oldLogin, 'select'), { code: '28P01' }, 'the old password is wrong')
  await sleep(1_000)
  assertAllAnswered(t, await stop())
})

function loginAs(username: string, password: string): string {
  return Object.assign(new URL(url), { username, password }).href
}

async function restartWith(instances: readonly Instance[], login: string): Promise<void> {
  for (const instance of instances) await instance.restart({ environment: { DATABASE_URL: login } })
}
