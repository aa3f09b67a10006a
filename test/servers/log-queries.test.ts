import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { openTestDatabase } from '../support/new-database.ts'
import { startInstance } from '../support/processes/instances.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startPlainHaproxy } from '../support/servers/proxies.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

t.test('docs/observability.md: the query of the log finds the heaviest apps', async (t) => {
  const { db, get, log } = await startService(t)
  const [heavy, light] = [await addCaller(db), await addCaller(db)]
  await addPortfolioTransactions(db, heavy.connection, {}, {}, {})
  for (let n = 0; n < 3; n += 1) await get(heavy.connection.portfolio, { token: heavy.token })
  await get(light.connection.orders, { token: light.token })
  await get(light.connection.orders)
  const requests = () => log.filter((line) => line.includes('"msg":"request"'))
  await until('each request has a line', () => requests().length === 5)

  const folder = t.testdir()
  await writeFile(join(folder, 'service.log'), log.join(''))
  const text = await readFile('docs/observability.md', 'utf8')
  const [slow = '', command = ''] = text.match(/(?<=```sh\n)jq --slurp [^`]+/g) ?? []
  const slowest = execFileSync('bash', ['-c', slow.replace('ID', heavy.appId)], {
    cwd: folder,
    encoding: 'utf8',
  })
  const times = JSON.parse(slowest).map(({ durationMs }: { durationMs: number }) => durationMs)
  t.equal(times.length, 3)
  t.same(
    times,
    times.toSorted((a: number, b: number) => b - a),
  )
  const apps = JSON.parse(execFileSync('bash', ['-c', command], { cwd: folder, encoding: 'utf8' }))
  const lines = requests().map((line) => JSON.parse(line))
  const expected = [heavy, light].map(({ appId }) => {
    const own = lines.filter(({ app }) => app === appId)
    const sum = (field: string) => own.reduce((all, line) => all + (line[field] ?? 0), 0)
    return {
      app: appId,
      requests: own.length,
      rows: sum('items'),
      seconds: sum('databaseMs') / 1000,
    }
  })
  expected.sort((one, two) => two.seconds - one.seconds)
  t.match(
    apps,
    expected.map(({ seconds: _, ...others }) => others),
  )
  t.match(
    new Set(expected.map(({ requests, rows }) => `${requests} ${rows}`)),
    new Set(['3 9', '1 0']),
  )
})

t.test('docs/runbook.md: the log of HAProxy has the source of rejected requests', async (t) => {
  const { login } = await openTestDatabase(t)
  const { port } = await startInstance(t, { environment: { DATABASE_URL: login } })
  const { url, log } = await startPlainHaproxy(t, [port, port])
  const path = '/api/v1/queries/connections/unknown/assets-transfer'
  const rejected = await fetch(url + path, { headers: { authorization: 'Bearer unknown' } })
  const denied = await fetch(`${url}/health/ready`)
  t.same([rejected.status, denied.status], [401, 404])
  const lineOf = ({ headers }: Response) => {
    const end = ` ${headers.get('x-request-id')}`
    return log()
      .split('\n')
      .find((line) => line.endsWith(end))
  }
  await until('each response has a line', () => Boolean(lineOf(rejected) && lineOf(denied)))
  t.match(lineOf(denied), /^\S+:\d\d:\d\d:\d\d \+0000 127\.0\.0\.1 GET 404 /)
  t.notOk(log().includes('/connections/'), 'no connection token')

  const folder = t.testdir({ 'haproxy.log': log() })
  const runbook = await readFile('docs/runbook.md', 'utf8')
  const commands = runbook.match(/^ *awk .*$/gm) ?? []
  t.equal(commands.length, 2)
  const [sources, newest] = commands.map((command) =>
    execFileSync('bash', ['-c', command], { cwd: folder, encoding: 'utf8' }),
  )
  t.match(sources, /^ *\d+ 127\.0\.0\.1\n$/)
  t.ok(newest?.includes(String(lineOf(rejected))))
})
