import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
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
  const [command = ''] = /(?<=```sh\n)jq --slurp [^`]+/.exec(text) ?? []
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
