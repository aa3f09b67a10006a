import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { startDrivers } from '../support/clients/drivers.ts'
import { PYTHON, pythonEnvironment } from '../support/clients/python.ts'
import { needsProgram, run } from '../support/programs.ts'
import { addAccountTransactions, addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

await needsProgram(t, PYTHON, 'python3')
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
    const text = await run(PYTHON, [program], { env })
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
  const printed = await run(PYTHON, [program], { env: { ...pythonEnvironment, ...env } })
  t.match(printed, / 2 I0\n/)
  t.match(printed, / -2 I0\n/)
})

t.test('beancount_file.py: accounts and investments with one beginning stay two', async (t) => {
  const { token, connection } = await addCaller(db)
  const day = { operation_date_day: '2025-03-14', currency: 'EUR' }
  await addAccountTransactions(
    db,
    connection,
    { ...day, amount: '100', account_id: '0199f3a2-1111-7abc-8000-000000000000' },
    { ...day, amount: '250', account_id: '0199f3a2-2222-7abc-8000-000000000000' },
  )
  const env = { BASE_URL: url, APP_TOKEN: token, CONNECTION_TOKEN: connection.token }
  const program = join(clients, 'python/examples/beancount_file.py')
  const execute = () => run(PYTHON, [program], { env: { ...pythonEnvironment, ...env } })
  const printed = await execute()
  t.match(printed, / {2}Assets:Cash:A0199f3a2-1111-7abc-8000-000000000000 {2}100 EUR\n/)
  t.match(printed, / {2}Assets:Cash:A0199f3a2-2222-7abc-8000-000000000000 {2}250 EUR\n/)
  const file = join(t.testdir({}), 'two.beancount')
  await writeFile(file, printed)
  t.equal(await run('bean-check', [file]), '')
  // The first 22 digits of both investments are equal.
  const investments = [
    '0199f3a2-1111-7abc-8000-000000000000',
    '0199f3a2-1111-7abc-8000-00ffffffffff',
  ]
  const bought = { ...day, titles: '1' }
  const rows = investments.map((investment) => ({ ...bought, investment }))
  await addPortfolioTransactions(db, connection, ...rows)
  await t.rejects(execute(), /would have one name, I0199F3A211117ABC800000/)
})

t.test('beancount_file.py: a cancelled purchase and a short sale: refused', async (t) => {
  const trade = { investment: randomUUID(), portfolio_id: randomUUID(), titles: '40' }
  const cases = [
    [[trade, { ...trade, titles: '-40' }], 'a row has negative titles'],
    [[{ ...trade, type: 'SELL' }], 'more shares leave than had arrived'],
  ] as const
  const program = join(clients, 'python/examples/beancount_file.py')
  for (const [rows, sentence] of cases) {
    const { token, connection } = await addCaller(db)
    await addPortfolioTransactions(db, connection, ...rows)
    const env = { BASE_URL: url, APP_TOKEN: token, CONNECTION_TOKEN: connection.token }
    const options = { env: { ...pythonEnvironment, ...env } }
    const message = new RegExp(`Investment \\S+ of portfolio \\S+: ${sentence}`)
    await t.rejects(run(PYTHON, [program], options), { code: 1, message })
  }
})

t.test('unknown connection: one sentence', async (t) => {
  const program = join(clients, 'python/examples/beancount_file.py')
  const env = { ...pythonEnvironment, ...variables('unknown') }
  // The message of execFile() has the output, too.
  const message = /^Command failed: .*\n(404 connection_not_found: .*)\n\n\1\n$/
  await t.rejects(run(PYTHON, [program], { env }), { code: 1, message })
})
