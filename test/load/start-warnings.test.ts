import { readFile } from 'node:fs/promises'
import t from 'tap'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { createDatabase } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { startProgram } from '../support/processes/program.ts'
import { launchService, startServiceProcess } from '../support/processes/service-process.ts'
import { until } from '../support/until.ts'

const { url: owner } = await createDatabase(t)
const DATABASE_URL = await loginOfService(t, openAsOwner(t, owner), owner)
const UNRESTRICTED = /row-level security does not restrict this role/

t.test('warnings: a misspelt setting, and a proxy that is not trusted, once', async (t) => {
  const service = await startServiceProcess(t, { DATABASE_URL, MAX_REQEUSTS: '10' })
  t.match(service.output(), 'MAX_REQEUSTS is no setting: did you mean MAX_REQUESTS?')
  t.notMatch(service.output(), UNRESTRICTED)
  t.notMatch(service.output(), 'TRUSTED_PROXIES')
  for (let n = 0; n < 3; n += 1)
    await fetch(`${service.url}/nothing`, { headers: { 'x-forwarded-for': '203.0.113.1' } })
  await until('the warning is logged', () => service.output().includes('TRUSTED_PROXIES'))
  t.equal(service.output().split('TRUSTED_PROXIES').length, 2)
})

t.test('warning: the service is the owner of the tables', async (t) => {
  const service = await startServiceProcess(t, { DATABASE_URL: owner, TRUSTED_PROXIES: '10.0.0.1' })
  t.match(service.output(), UNRESTRICTED)
  await fetch(`${service.url}/nothing`, { headers: { 'x-forwarded-for': '203.0.113.1' } })
  t.notMatch(service.output(), 'set TRUSTED_PROXIES')
})

t.test('NODE_ENV=production without DATABASE_URL: no embedded database starts', async (t) => {
  const program = await launchService(t, { NODE_ENV: 'production', DATABASE_URL: '' })
  await until('the service has ended', () => program.process.exitCode !== null)
  t.equal(program.process.exitCode, 1)
  t.match(program.output(), 'DATABASE_URL must be set, because NODE_ENV is production.')
})

t.test('SIGUSR1: no inspector opens, and the service goes on', async (t) => {
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8'))
  const port = String(await freePort())
  const [, ...args] = scripts.start.split(' ')
  const environment = { DATABASE_URL, PORT: port }
  const options = { command: process.execPath, package: 'nodejs', args, environment }
  const program = await startProgram(t, options)
  const isLive = () =>
    fetch(`http://127.0.0.1:${port}/health/live`).then(
      ({ status }) => status === 200,
      () => false,
    )
  await until('the service is live', isLive)
  program.process.kill('SIGUSR1')
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  t.notMatch(program.output(), 'Debugger')
  t.ok(await isLive())
  for (const file of ['Dockerfile', 'deploy/systemd/investment-data-query@.service'])
    t.match(await readFile(file, 'utf8'), /bin\/node\W+--disable-sigusr1/, file)
  t.match(scripts.operator, '--disable-sigusr1')
})
