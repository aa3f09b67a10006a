import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { startDrivers } from '../support/clients/drivers.ts'
import { run } from '../support/programs.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

const { url, db } = await startSeededService(t)
const { connections } = DEMO.wealth
const program = join(import.meta.dirname, '../../clients/typescript/examples/ghostfolio.ts')
const { TypeScript } = startDrivers(t)

const accessOf = (connection: string) => ({ url, token: DEMO_TOKEN, connection })
const variables = (connection: string) => ({
  BASE_URL: url,
  APP_TOKEN: DEMO_TOKEN,
  CONNECTION_TOKEN: connection,
})

interface State {
  positions: { investment: string; titles: Record<string, string> }[]
}
/** Ghostfolio reads floats. */
const ROUNDING = 1e-9

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

t.test('an import file with each buy, sell and payment', async (t) => {
  const validate = addFormats.default(new Ajv({ strict: true })).compile(ghostfolioImport)
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
    const dates = file.activities.map(({ date }: { date: string }) => date)
    t.strictSame(dates, dates.toSorted(), 'the oldest first')
    const symbols = file.assetProfiles.map(({ symbol }: { symbol: string }) => symbol)
    t.ok(file.activities.every(({ symbol }: { symbol: string }) => symbols.includes(symbol)))
  }
})

t.test(
  'the stories of the sample data: possible positions, and those of expected.json',
  async (t) => {
    const path = new URL('../../seeds/expected.json', import.meta.url)
    const expected: Record<string, State[]> = JSON.parse(await readFile(path, 'utf8'))
    for (const [token, [state]] of Object.entries(expected)) {
      const args = ['--disable-warning=ExperimentalWarning', program]
      const printed = run(process.execPath, args, { env: variables(token) })
      if (token === 'DEMOFRACTION1') {
        await t.rejects(printed, /a number of JSON would round 0\.200000000000000003\.\n/)
        continue
      }
      const file = JSON.parse(await printed)
      const shares = new Map<string, number>()
      for (const { type, symbol, quantity } of file.activities) {
        if (type !== 'BUY' && type !== 'SELL') continue
        const size = (shares.get(symbol) ?? 0) + (type === 'BUY' ? quantity : -quantity)
        t.ok(size > -ROUNDING, `${token}: ${type} ${quantity}`)
        shares.set(symbol, size)
      }
      // Ghostfolio has one position of an investment, for all portfolios.
      for (const { investment, titles } of state?.positions ?? []) {
        const last = Number(Object.values(titles).at(-1) ?? 0)
        shares.set(investment, (shares.get(investment) ?? 0) - last)
      }
      for (const rest of shares.values()) t.ok(Math.abs(rest) < ROUNDING, `${token}: ${rest}`)
    }
  },
)

t.test('writes pence as GBp, and lists what it omits', async (t) => {
  const caller = await addCaller(db)
  const row = { investment: randomUUID(), titles: '2', price: '3', amount: '6' }
  const currencies = ['EUR', 'GBX', 'EURO', 'eur', null]
  await addPortfolioTransactions(
    db,
    caller.connection,
    ...currencies.map((currency) => ({ ...row, currency })),
    { ...row, currency: 'EUR', investment: null },
    { ...row, currency: 'EUR', titles: '0' },
  )
  const env = { BASE_URL: url, APP_TOKEN: caller.token, CONNECTION_TOKEN: caller.connection.token }
  const command = '"$0" --disable-warning=ExperimentalWarning "$1" 2>&1'
  const printed = await run('sh', ['-c', command, process.execPath, program], { env })
  const [, file = '', listed] = /^(.*\n})\n(.*)\n$/s.exec(printed) ?? []
  const { activities } = JSON.parse(file)
  const written = activities.map(({ currency }: { currency: string }) => currency)
  t.strictSame(written.sort(), ['EUR', 'GBp'])
  t.strictSame(listed?.split('\n'), [
    '2 activities of 7 transactions. Left out: the account list',
    'Left out: BUY without a currency of Ghostfolio, rows: 1, amount: 6 EURO',
    'Left out: BUY without a currency of Ghostfolio, rows: 1, amount: 6 eur',
    'Left out: BUY without a currency of Ghostfolio, rows: 1, amount: 6 of no currency',
    'Left out: BUY without an investment, rows: 1, amount: 6 EUR',
    'Left out: BUY without shares, rows: 1, amount: 6 EUR',
  ])
})

t.test('a cancelled purchase and a short sale: refused with one sentence', async (t) => {
  const trade = { investment: randomUUID(), portfolio_id: randomUUID(), currency: 'EUR' }
  const bought = { ...trade, titles: '40', amount: '1907.20' }
  const sold = { ...bought, type: 'SELL' } as const
  const cases = [
    [[bought, { ...bought, titles: '-40', amount: '-1907.20' }], 'a row has negative titles'],
    [[sold], 'more shares leave than had arrived'],
    [
      [bought, { ...sold, titles: '-4' }, { ...sold, titles: '4' }],
      'titles of one type have both signs',
    ],
  ] as const
  for (const [rows, sentence] of cases) {
    const caller = await addCaller(db)
    await addPortfolioTransactions(db, caller.connection, ...rows)
    const env = { BASE_URL: url, APP_TOKEN: caller.token, NODE_NO_WARNINGS: '1' }
    const message = new RegExp(`: .*\n(Investment \\S+ of portfolio \\S+: ${sentence}.*)\n\n\\1\n$`)
    const args = { env: { ...env, CONNECTION_TOKEN: caller.connection.token } }
    await t.rejects(run(process.execPath, [program], args), { code: 1, message })
  }
})

t.test('unknown connection: one sentence', async (t) => {
  const env = { ...variables('unknown'), NODE_NO_WARNINGS: '1' }
  // The message of execFile() has the output, too.
  const message = /^Command failed: .*\n(404 connection_not_found: .*)\n\n\1\n$/
  await t.rejects(run(process.execPath, [program], { env }), { code: 1, message })
})
