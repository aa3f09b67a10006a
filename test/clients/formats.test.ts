import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
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

const text = { type: 'string', minLength: 1, maxLength: 255 }
const positive = { type: 'number', minimum: 0 }
/** Rules of Ghostfolio for an import, and for the profile of an asset without market data. */
const ghostfolioImport = {
  type: 'object',
  required: ['activities', 'assetProfiles'],
  properties: {
    activities: {
      type: 'array',
      items: {
        type: 'object',
        required: ['currency', 'date', 'fee', 'quantity', 'symbol', 'type', 'unitPrice'],
        additionalProperties: false,
        properties: {
          comment: { type: ['string', 'null'] },
          currency: { type: 'string', pattern: '^[A-Z]{3}$' },
          dataSource: { const: 'MANUAL' },
          date: { type: 'string', format: 'date-time' },
          fee: positive,
          quantity: positive,
          symbol: { ...text, format: 'uuid' },
          type: { enum: ['BUY', 'DIVIDEND', 'FEE', 'INTEREST', 'LIABILITY', 'SELL'] },
          unitPrice: positive,
        },
      },
    },
    assetProfiles: {
      type: 'array',
      items: {
        type: 'object',
        required: ['currency', 'dataSource', 'name', 'symbol'],
        properties: { currency: text, dataSource: { const: 'MANUAL' }, name: text, symbol: text },
      },
    },
  },
}

t.test('ghostfolio.ts: an import file with each buy, sell and payment', async (t) => {
  const validate = addFormats.default(new Ajv({ strict: true })).compile(ghostfolioImport)
  const program = join(clients, 'typescript/examples/ghostfolio.ts')
  for (const { token } of [connections.small, connections.large]) {
    const args = ['--disable-warning=ExperimentalWarning', program]
    const file = JSON.parse(await run(process.execPath, args, { env: variables(token) }))
    t.ok(validate(file), JSON.stringify(validate.errors))
    const rows = await TypeScript.list(accessOf(token), 'portfolio')
    const counts = [
      ['BUY', 'BUY'],
      ['SELL', 'SELL'],
      ['DIVIDENDS', 'DIVIDEND'],
    ].map(([type, activity]) => {
      const complete = rows.filter((row) => row.type === type && row.currency && row.investment)
      const found = file.activities.filter((each: { type: string }) => each.type === activity)
      return { type, complete: complete.length, found: found.length }
    })
    // The sides of splits and transfers are also buys and sells.
    const missing = counts.filter(({ complete, found }) => found < complete)
    t.strictSame(missing, [], JSON.stringify(counts))
    const symbols = file.assetProfiles.map(({ symbol }: { symbol: string }) => symbol)
    t.ok(file.activities.every(({ symbol }: { symbol: string }) => symbols.includes(symbol)))
  }
})

t.test('ghostfolio.ts: writes pence as GBp, and counts what it omits', async (t) => {
  const caller = await addCaller(db)
  const row = { investment: randomUUID(), titles: '2', price: '3' }
  const currencies = ['EUR', 'GBX', 'EURO', 'eur', null]
  await addPortfolioTransactions(
    db,
    caller.connection,
    ...currencies.map((currency) => ({ ...row, currency })),
    { ...row, currency: 'EUR', investment: null },
    { ...row, currency: 'EUR', titles: '0' },
  )
  const program = join(clients, 'typescript/examples/ghostfolio.ts')
  const env = { BASE_URL: url, APP_TOKEN: caller.token, CONNECTION_TOKEN: caller.connection.token }
  const command = '"$0" --disable-warning=ExperimentalWarning "$1" 2>&1'
  const printed = await run('sh', ['-c', command, process.execPath, program], { env })
  const [, file = '', count] = /^(.*})\n(.*)\n$/s.exec(printed) ?? []
  const { activities } = JSON.parse(file)
  const written = activities.map(({ currency }: { currency: string }) => currency)
  t.strictSame(written.sort(), ['EUR', 'GBp'])
  t.equal(count, '2 activities; 5 transactions have no such activity')
})

t.test('beancount_file.py: bean-check accepts it; every row with its digits', async (t) => {
  const folder = t.testdir({})
  const program = join(clients, 'python/examples/beancount_file.py')
  for (const { token } of [connections.small, connections.large]) {
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

t.test('unknown connection: each program ends with one sentence', async (t) => {
  const env = { ...pythonEnvironment, ...variables('unknown') }
  for (const [command, program] of [
    [process.execPath, 'typescript/examples/ghostfolio.ts'],
    ['python3', 'python/examples/beancount_file.py'],
  ] as const) {
    const ended = run(command, [join(clients, program)], {
      env: { ...env, NODE_NO_WARNINGS: '1' },
    })
    // The message of execFile() has the output, too.
    const message = /^Command failed: .*\n(404 connection_not_found: .*)\n\n\1\n$/
    await t.rejects(ended, { code: 1, message }, program)
  }
})
