import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { operatorHere } from '../../operator/operator-process.ts'
import { databaseUrl } from '../../support/template.ts'
import { learnDemo, seedDemo } from '../support/demo-answers.ts'
import { blocksOf, inSentence } from '../support/documented-commands.ts'
import { allAnswered } from '../support/load.ts'
import { type Instance, startInstance } from '../support/processes/instances.ts'
import { runShell } from '../support/processes/shell.ts'
import { keepAskingThrough } from '../support/proxied-load.ts'
import {
  firstValue,
  migrateFor,
  settingsOf,
  startDebianPostgres,
} from '../support/servers/debian-postgres.ts'
import { startHaproxy } from '../support/servers/proxies.ts'

/** The password of the service's role, changed by the steps of docs/operations.md, there and back. */
const [secondLogin = ''] = await blocksOf('Rotate credentials')
const folder = await mkdtemp(join(tmpdir(), 'rotation-'))
t.teardown(() => rm(folder, { recursive: true }))
const server = await startDebianPostgres(t)
await firstValue(server.url, 'create database investments')
const url = databaseUrl(server.url, 'investments')
const old = await migrateFor(url)
await seedDemo(url)
const known = await learnDemo(t, url)

t.test('The password of the service is changed, and no request is lost', async (t) => {
  const start = { environment: { DATABASE_URL: old } }
  const instances = [await startInstance(t, start), await startInstance(t, start)] as const
  const proxy = await startHaproxy(t, [instances[0].port, instances[1].port])
  const stop = keepAskingThrough(t, proxy, known)

  await writeFile(join(folder, 'second-login.sql'), secondLogin)
  const psql = `psql ${url} --set ON_ERROR_STOP=1 --file ${folder}/second-login.sql`
  // Who has a terminal is asked for the new password twice.
  await runShell(t, psql, {}, 'of-b\nof-b\n')
  const other = loginAs('investment_service_b', 'of-b')
  t.same(await settingsOf(url, 'investment_service_b'), await settingsOf(url, 'investment_service'))
  await restartAs(instances, other)
  await firstValue(url, await inSentence('alter role investment_service nologin'))
  await t.rejects(firstValue(old, 'select'), { code: '28000' }, 'the old password is of no use')

  const environment = { DATABASE_URL: url, SERVICE_DATABASE_PASSWORD: 'the-new-one' }
  t.equal((await operatorHere(['migrate'], environment)).code, 0)
  await restartAs(instances, loginAs('investment_service', 'the-new-one'))
  await firstValue(url, 'alter role investment_service_b nologin')
  await t.rejects(firstValue(other, 'select'), { code: '28000' })
  await t.rejects(firstValue(old, 'select'), { code: '28P01' }, 'nor is it now')
  await sleep(1_000)
  allAnswered(t, await stop())
})

function loginAs(role: string, password: string): string {
  return Object.assign(new URL(url), { username: role, password }).href
}

async function restartAs(instances: readonly Instance[], login: string): Promise<void> {
  for (const instance of instances) await instance.restart({ environment: { DATABASE_URL: login } })
}
