import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { isNightly } from '../nightly.ts'
import { codeBlocks, inlineCommand } from '../support/documented-commands.ts'
import { recordDemo, recordOk, seedDemo } from '../support/golden-responses.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import { operatorHere } from '../support/operator-process.ts'
import { type Instance, startInstance } from '../support/processes/instances.ts'
import { startServiceProcess, untilReadyIs } from '../support/processes/service-process.ts'
import { runShell } from '../support/processes/shell.ts'
import {
  firstValue,
  migrate,
  roleSettings,
  startDebianPostgres,
} from '../support/servers/debian-postgres.ts'
import { startHaproxy } from '../support/servers/proxies.ts'
import { databaseUrl } from '../support/template.ts'
import { until } from '../support/until.ts'

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
  // Below the limit of the proxy: 5,000 requests in ten seconds.
  const stop = startGoldenLoad(t, {
    url: proxy.url,
    golden,
    clients: 8,
    pauseMs: isNightly ? 20 : 50,
  })

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

t.test('200: a file with the password is renewed, no request fails, no restart', async (t) => {
  await firstValue(url, "alter role investment_service login password 'first'")
  const file = join(folder, 'database-url')
  await writeFile(file, loginAs('investment_service', 'first'))
  const environment = { DATABASE_URL_FILE: file, LOG_LEVEL: 'info', DATABASE_POOL_SIZE: '4' }
  const service = await startServiceProcess(t, environment)
  await untilReadyIs(service, 200)
  const load = { url: service.url, golden, clients: CLIENTS }
  let stop = startGoldenLoad(t, load)
  const sessions = (condition: string) =>
    firstValue(url, `select count(*)::int from pg_stat_activity where usename ${condition}`)
  /** Ends one connection after the other. A read is repeated once, so each cut waits for the end of the last one. */
  const cutAll = async () => {
    const own = `from pg_stat_activity where usename ^@ 'investment_service'`
    const before = await firstValue(url, `select array_agg(pid) ${own}`)
    for (const pid of before as number[]) {
      const mark = service.output().slice(-300)
      await firstValue(url, `select pg_terminate_backend(${pid})`)
      // Without the mark, there were so many lines that it is gone.
      const since = () => service.output().split(mark)[1]?.split('"msg":"request"')
      await until('requests go on', () => (since()?.length ?? Infinity) > 3 * CLIENTS)
    }
  }
  await sleep(300)
  // Open connections serve the requests until the file has the new password.
  await firstValue(url, "alter role investment_service password 'second'")
  await sleep(1_500)
  await writeFile(file, `${loginAs('investment_service', 'second')}\n`)
  await cutAll()

  // Another role, and SIGHUP: the connections of the first one end.
  await firstValue(url, "alter role investment_service_b login password 'third'")
  await writeFile(file, loginAs('investment_service_b', 'third'))
  service.process.kill('SIGHUP')
  await until('no session of the first role', async () => {
    return (await sessions("= 'investment_service'")) === 0
  })
  const untilRenewed = (times: number) =>
    until('the log says that SIGHUP has been handled', () => {
      return service.output().split('SIGHUP: new connections use the files').length > times
    })
  await untilRenewed(1)
  // Only open connections can stay.
  const untilOpen = () =>
    until('connections of the second role are open', async () => {
      return Number(await sessions("= 'investment_service_b'")) > 0
    })
  await untilOpen()
  assertAllAnswered(t, await stop())

  for (const [text, reason] of [
    ['', 'The file of DATABASE_URL_FILE is empty.'],
    [loginAs('investment_service_b', 'wrong'), 'password authentication failed'],
  ] as const) {
    await writeFile(file, text)
    service.process.kill('SIGHUP')
    await until('the log has the reason', () => service.output().includes(reason))
    const response = await recordOk(service.url, golden.slice(0, 1))
    t.equal(response.length, 1, 'an open connection serves it')
  }
  t.ok(Number(await sessions("= 'investment_service_b'")) > 0, 'its connections stay')
  await writeFile(file, loginAs('investment_service_b', 'third'))
  // A connection that has read the wrong password may still be on its way.
  service.process.kill('SIGHUP')
  await untilRenewed(2)
  stop = startGoldenLoad(t, load)
  await untilOpen()
  await cutAll()
  const report = await stop()
  t.notMatch(service.output(), 'could not be served')
  t.comment(`${report.sent} sent, ${report.ok} with 200, ${report.sent - report.ok} other`)
  assertAllAnswered(t, report)
  t.notMatch(service.output(), /:(first|second|third|wrong)@/)
  await firstValue(url, 'alter role investment_service_b nologin')
})

const CLIENTS = 8

function loginAs(username: string, password: string): string {
  return Object.assign(new URL(url), { username, password }).href
}

async function restartWith(instances: readonly Instance[], login: string): Promise<void> {
  for (const instance of instances) await instance.restart({ environment: { DATABASE_URL: login } })
}
