import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { pythonEnvironment, startDrivers } from '../support/clients/drivers.ts'
import { needsProgram, run } from '../support/programs.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

await needsProgram(t, 'python3', 'python3')
await needsProgram(t, 'bean-check', 'beancount')

const { url, db } = await startSeededService(t)
const { connections } = DEMO.wealth
const clients = join(import.meta.dirname, '../../clients')
const { TypeScript } = startDrivers(t)

const accessOf = (connection: string) => ({ url, token: DEMO_TOKEN, connection })
const variables = (connection: string) => ({
  BASE_URL: url,
  APP_TOKEN: DEMO_TOKEN,
  CONNECTION_TOKEN: connection,
})

t.test('beancount_file.py: bean-check accepts it; every row with its digits', async (t) => {
  const folder = t.testdir({})
  const program = join(clients, 'python/examples/beancount_file.py')
  for (const { token } of Object.values(connections)) {
    const env = { ...pythonEnvironment, ...variables(token) }
    const text = await run('python3', [program], { env })
    const file = join(folder, `${token}.beancount`)
    await writeFile(file, text)
    t.equal(await run('bean-check', [file]), '')
    const entries = new Map(
      text.split('\n\n').map((entry) => [/^ {2}id: "(.*)"$/m.exec(entry)?.[1], entry]),
    )
    const cash = await TypeScript.list(accessOf(token), 'account')
    const portfolio = await TypeScript.list(accessOf(token), 'portfolio')
    const missing = [
      ...cash.filter((row) => !entries.get(`${row.movementId}`)?.includes(` ${row.amount} `)),
      ...portfolio.filter(
        (row) => !entries.get(`${row.transactionId}`)?.includes(`${row.amount ?? ''}`),
      ),
    ]
    t.strictSame(missing, [], `${cash.length} and ${portfolio.length} rows`)
  }
})

t.test('beancount_file.py: units without an investment are I0', async (t) => {
  const { token, connection } = await addCaller(db)
  await addPortfolioTransactions(db, connection, { type: 'BUY', titles: '2', investment: null })
  const env = { BASE_URL: url, APP_TOKEN: token, CONNECTION_TOKEN: connection.token }
  const program = join(clients, 'python/examples/beancount_file.py')
  const printed = await run('python3', [program], { env: { ...pythonEnvironment, ...env } })
  t.match(printed, / 2 I0\n/)
  t.match(printed, / -2 I0\n/)
})

t.test('unknown connection: one sentence', async (t) => {
  const program = join(clients, 'python/examples/beancount_file.py')
  const env = { ...pythonEnvironment, ...variables('unknown') }
  // The message of execFile() has the output, too.
  const message = /^Command failed: .*\n(404 connection_not_found: .*)\n\n\1\n$/
  await t.rejects(run('python3', [program], { env }), { code: 1, message })
})
