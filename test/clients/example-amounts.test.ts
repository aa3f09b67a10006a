/**
 * The example programs that compute or export: what comes out is what went in, exactly, or the program refuses in a
 * sentence. What it leaves out, it lists. Also with the real statements of REAL_DATA_DIR, if it is set.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { openInput } from '../../src/operator/inputs.ts'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import { isNightly } from '../nightly.ts'
import { PYTHON, pythonEnvironment } from '../support/clients/python.ts'
import { openPool } from '../support/database.ts'
import { needsProgram, run } from '../support/programs.ts'
import { runs } from '../support/random.ts'
import {
  addAccountTransactions,
  addCaller,
  addPortfolioTransactions,
  type Caller,
} from '../support/rows.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

await needsProgram(t, PYTHON, 'python3')
t.setTimeout(1_500_000)

const clients = join(import.meta.dirname, '../../clients')
const service = await startSeededService(t)
const pool = openPool(t, service.databaseUrl, { max: 1 })
const folder = t.testdir({})

type Row = Record<string, string | null>
type Environment = Record<string, string>

const real = process.env.REAL_DATA_DIR
const found = real === undefined ? [] : await readdir(real, { withFileTypes: true })
const PROGRAMS = {
  ghostfolio: [process.execPath, join(clients, 'typescript/examples/ghostfolio.ts')],
  beancount: [PYTHON, join(clients, 'python/examples/beancount_file.py')],
  typescript: [process.execPath, join(clients, 'examples/tax-report.ts')],
  python: [PYTHON, join(clients, 'examples/tax_report.py')],
} as const
type Program = keyof typeof PROGRAMS

interface Result {
  /** The sentence of a refusal. */
  refusal: string | undefined
  output: string
  /** Lines with what is left out: rows and sum by what it is. */
  leftOut: string[]
}

let copies = 0
async function start(program: Program, caller: Access, env: Environment = {}): Promise<Result> {
  copies += 1
  const access = { APP_TOKEN: caller.token, CONNECTION_TOKEN: caller.connection }
  const COPY = join(folder, `${copies}.db`)
  const [command, path] = PROGRAMS[program]
  // Standard error follows standard output, so that both are read in one text.
  const script = `"$0" "$1" 2> "$COPY.errors"; code=$?; echo; echo "=== $code"; cat "$COPY.errors"`
  const printed = await run('sh', ['-c', script, command, path], {
    env: {
      ...pythonEnvironment,
      PATH: String(process.env.PATH),
      NODE_NO_WARNINGS: '1',
      BASE_URL: service.url,
      ...access,
      COPY,
      ...env,
    },
  })
  const [output = '', rest = ''] = printed.split('\n=== ')
  const [code, ...errors] = rest.trim().split('\n')
  const refusal = code === '0' ? undefined : errors.join('\n')
  const leftOut = [...output.split('\n'), ...errors].filter((line) => line.startsWith('Left out: '))
  return { refusal, output, leftOut }
}

interface Access {
  token: string
  connection: string
}

const accessOf = ({ token, connection }: Caller): Access => ({
  token,
  connection: connection.token,
})

/** Rows as the service exports them, with decimals as text. */
async function exported({ token, connection }: Access, list: string): Promise<Row[]> {
  const path = `/api/v1/queries/connections/${encodeURIComponent(connection)}/${list}/transactions`
  const headers = { accept: 'application/x-ndjson;IEEE754Compatible=true' }
  const { text } = await service.get(path, { token, headers })
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line))
}

/** Units of 10 ** -SCALE, also of a number with an exponent. */
const SCALE = 80
function units(decimal: string | number | null | undefined): bigint {
  const [digits = '0', exponent = '0'] = String(decimal ?? 0).split('e')
  const [whole = '0', fraction = ''] = digits.split('.')
  const zeros = SCALE - fraction.length + Number(exponent)
  return BigInt(whole + fraction) * 10n ** BigInt(zeros)
}
const size = (value: bigint) => (value < 0n ? -value : value)

/** Rows and sums of the lines with what is left out. */
function countsOf(lines: string[]): Map<string, { rows: number; sum: bigint }> {
  const found = lines.map((line) => {
    const [, what = '', rows, text = ''] =
      /^Left out: (.*), rows: (\d+)(?:, amount: (.*))?$/.exec(line) ?? []
    const [amount = ''] = text.split(' ')
    return [what, { rows: Number(rows), sum: /\d/.test(amount) ? units(amount) : 0n }] as const
  })
  const counts = new Map<string, { rows: number; sum: bigint }>()
  for (const [what, { rows, sum }] of found) {
    const before = counts.get(what) ?? { rows: 0, sum: 0n }
    counts.set(what, { rows: before.rows + rows, sum: before.sum + sum })
  }
  return counts
}

/** Section 2.4 of the specification. */
function effectOf(type: string): string {
  if (/_BUY$|_IN$|^(BUY|RIGHTS_ISSUE|SPINOFF)$/.test(type)) return '+'
  return /_SELL$|_OUT$|^(SELL|DELISTING|RIGHTS_EXCLUSION)$/.test(type) ? '-' : ''
}

const ACTIVITIES: Record<string, string> = {
  '+': 'BUY',
  '-': 'SELL',
  DIVIDENDS: 'DIVIDEND',
  COUPON: 'INTEREST',
}
const isSentence = (text = '') => /^[^\n]+\.$/.test(text) && !/ {4}at |Traceback/.test(text)

/** Ghostfolio: amounts, shares and fees of each investment and kind of activity. */
async function checkGhostfolio(t: Test, access: Access): Promise<string | undefined> {
  const { refusal, output, leftOut } = await start('ghostfolio', access)
  if (refusal !== undefined) {
    t.ok(isSentence(refusal), refusal)
    t.equal(output.trim(), '')
    return refusal
  }
  const wanted: Record<string, bigint[]> = {}
  const found: Record<string, bigint[]> = {}
  const addTo = (sums: Record<string, bigint[]>, key: string, values: bigint[]) => {
    const before = sums[key] ?? [0n, 0n, 0n]
    sums[key] = before.map((value, index) => value + (values[index] ?? 0n))
  }
  let without = 0
  let withoutSum = 0n
  for (const row of await exported(access, 'portfolios')) {
    const activity = ACTIVITIES[String(row.type)] ?? ACTIVITIES[effectOf(String(row.type))]
    const isPayment = row.type === 'DIVIDENDS' || row.type === 'COUPON'
    const isKnown = isPayment ? row.amount !== null : units(row.titles) !== 0n
    const isCurrency = row.currency === 'GBX' || /^[A-Z]{3}$/.test(row.currency ?? '')
    if (activity === undefined || row.investment === null || !isCurrency || !isKnown) {
      without += 1
      withoutSum += units(row.amount)
      continue
    }
    const titles = isPayment ? units('1') : size(units(row.titles))
    // One of two factors is in whole units, so that the product has the scale of the other one.
    const money = size(units(row.amount)) * 10n ** BigInt(SCALE)
    const key = [activity, row.investment, row.currency?.replace('GBX', 'GBp')].join()
    addTo(wanted, key, [money, titles, size(units(row.commission))])
  }
  for (const { type, symbol, currency, quantity, unitPrice, fee } of JSON.parse(output).activities)
    addTo(found, [type, symbol, currency].join(), [
      units(quantity) * units(unitPrice),
      // Payments have the quantity 1 each.
      units(quantity),
      units(fee),
    ])
  t.strictSame(found, wanted)
  const listed = [...countsOf(leftOut)].filter(([what]) => / without /.test(what))
  t.equal(
    listed.reduce((rows, [, each]) => rows + each.rows, 0),
    without,
  )
  t.equal(
    listed.reduce((sum, [, each]) => sum + each.sum, 0n),
    withoutSum,
  )
  t.match(leftOut.length === 0 ? '' : leftOut[0], /^Left out: |^$/)
  return undefined
}

/** Beancount: cash of each account, and each price by its amount. */
async function checkBeancount(t: Test, access: Access): Promise<string | undefined> {
  const { refusal, output } = await start('beancount', access)
  if (refusal !== undefined) {
    t.ok(isSentence(refusal), refusal)
    t.equal(output.trim(), '')
    return refusal
  }
  const cash: Record<string, bigint> = {}
  for (const row of await exported(access, 'accounts'))
    cash[`A${row.accountId}`] = (cash[`A${row.accountId}`] ?? 0n) + units(row.amount)
  const posted: Record<string, bigint> = {}
  for (const [, account = '', amount] of output.matchAll(/^ {2}Assets:Cash:(\S+) {2}(\S+) /gm))
    posted[account] = (posted[account] ?? 0n) + units(amount)
  t.strictSame(posted, cash)
  const prices = new Set(
    [...output.matchAll(/^(\S+) price (\S+) (\S+) /gm)].map(([, day, name, price]) => {
      return [day, name, units(price)].join()
    }),
  )
  const entries = new Map(
    output.split('\n\n').map((each) => [/^ {2}id: "(.*)"$/m.exec(each)?.[1], each]),
  )
  let priced = 0
  for (const row of await exported(access, 'portfolios')) {
    const entry = entries.get(String(row.transactionId)) ?? ''
    for (const field of ['amount', 'commission', 'taxes'])
      if (row[field] !== null) t.match(entry, `  ${field}: "${row[field]} `)
    const [amount, titles] = [size(units(row.amount)), size(units(row.titles))]
    const hasPrice = amount !== 0n && titles !== 0n && row.investment && effectOf(String(row.type))
    const money = amount * 10n ** BigInt(SCALE)
    if (!hasPrice || money % titles !== 0n) continue
    priced += 1
    const name = `I${row.investment?.replaceAll('-', '').toUpperCase().slice(0, 22)}`
    const day = row.operationDateDay ?? row.valueDateDay
    t.ok(prices.has([day, name, money / titles].join()), `price of ${row.transactionId}`)
  }
  t.equal([...output.matchAll(/^\S+ price /gm)].length, priced, 'and no other price')
  return undefined
}

/** The tax reports: the same text, dividends of rows in euros, and each row in a figure or in the list. */
async function checkTaxReports(
  t: Test,
  access: Access,
  env: Environment = {},
): Promise<string | undefined> {
  const { refusal, output, leftOut } = await start('typescript', access, env)
  const other = await start('python', access, env)
  t.equal(other.refusal, refusal)
  t.equal(other.output, output)
  if (refusal !== undefined) {
    t.ok(isSentence(refusal), refusal)
    t.notMatch(output, /gains/)
    return refusal
  }
  const currency = env.BASE_CURRENCY ?? 'EUR'
  t.match(output, new RegExp(`^Data of .*, in ${currency}$`, 'm'))
  const listed = countsOf(leftOut)
  const wanted = new Map<string, { rows: number; sum: bigint }>()
  const gross: Record<string, bigint> = {}
  let isWhole = true
  for (const list of ['portfolio', 'account'])
    for (const row of await exported(access, `${list}s`)) {
      const type = String(row.type)
      if (type === 'DIVIDENDS' && list === 'portfolio') {
        const year = (row.operationDateDay ?? row.valueDateDay ?? '').slice(0, 4)
        const base = row.currency === currency ? row.amount : row.amountBaseCurrency
        isWhole &&= base !== null || units(row.amount) === 0n
        gross[year] = (gross[year] ?? 0n) + units(base)
      }
      // A payment of a merger is a part of its gain.
      if (type === 'DIVIDENDS' || type === 'COMPENSATION') continue
      if (list === 'portfolio' && effectOf(type) !== '') continue
      const before = wanted.get(`${list} ${type}`) ?? { rows: 0, sum: 0n }
      const sum = before.sum + units(row.amount)
      wanted.set(`${list} ${type}`, { rows: before.rows + 1, sum })
    }
  for (const [what, each] of wanted) t.strictSame(listed.get(what), each, what)
  if (!isWhole) return undefined
  for (const [, year = '', text] of output.matchAll(/^(\d{4}): .* dividends (\S+) gross/gm)) {
    const half = 10n ** BigInt(SCALE - 2) / 2n
    const rounded = ((gross[year] ?? 0n) + half) / (2n * half)
    t.equal(units(text) / (2n * half), rounded, `dividends of ${year}`)
  }
  return undefined
}

const ALL = { ghostfolio: checkGhostfolio, beancount: checkBeancount, tax: checkTaxReports }

interface CheckOptions {
  checks?: Partial<typeof ALL>
  env?: Environment
}

async function checkAll(
  t: Test,
  name: string,
  access: Access,
  { checks = ALL, env = {} }: CheckOptions = {},
): Promise<void> {
  for (const [program, check] of Object.entries(checks)) {
    const refusal = await check(t, access, env)
    t.comment(`${name}, ${program}: ${refusal === undefined ? 'exact' : `refused: ${refusal}`}`)
  }
}

const INVESTMENT = '33333333-0000-4000-8000-000000000021'
const OTHER = '44444444-0000-4000-8000-000000000022'
const common = {
  portfolio_id: '22222222-0000-4000-8000-000000000001',
  investment: INVESTMENT,
  currency: 'EUR',
} as const
type Rows = Parameters<typeof addPortfolioTransactions>[2][]

async function callerWith(...rows: Rows): Promise<Access> {
  const caller = await addCaller(service.db)
  await addPortfolioTransactions(service.db, caller.connection, ...rows)
  return accessOf(caller)
}

/** Returns the activities of Ghostfolio. */
async function activitiesOf(access: Access) {
  const { refusal, output, leftOut } = await start('ghostfolio', access)
  const activities = refusal === undefined ? JSON.parse(output).activities : []
  const texts = activities.map(
    ({ type, quantity, unitPrice }: { type: string; quantity: number; unitPrice: number }) =>
      `${type} ${quantity} ${unitPrice}`,
  )
  return { refusal, texts, leftOut }
}

t.test('a reversed dividend: no income of both, and the sign in Beancount', async (t) => {
  const paid = {
    ...common,
    type: 'DIVIDENDS',
    titles: '80',
    operation_date_day: '2025-05-02',
  } as const
  const access = await callerWith(
    { ...common, titles: '80', amount: '800', operation_date_day: '2025-01-02' },
    { ...paid, amount: '24', taxes: '3.60', operation_date_day: '2025-03-17' },
    { ...paid, amount: '-24', taxes: '-3.60' },
    { ...paid, amount: '20.40', taxes: '3.06' },
  )
  const { refusal } = await activitiesOf(access)
  t.equal(refusal, 'DIVIDENDS of 2025-05-02: amount is negative. It may cancel another row.')
  t.match(await checkTaxReports(t, access), /DIVIDENDS of 2025-05-02: amount is negative/)
  t.equal(await checkBeancount(t, access), undefined)
  const { output } = await start('beancount', access)
  t.match(output, / {2}amount: "-24 EUR"\n {2}taxes: "-3.60 EUR"/)
})

t.test('signs that may cancel a row: refused; one sign of all purchases is none', async (t) => {
  const bought = { ...common, titles: '10', amount: '-500', commission: '-2' }
  const sold = { ...bought, type: 'SELL', amount: '600', operation_date_day: '2025-02-01' } as const
  const signed = await activitiesOf(await callerWith(bought, sold))
  t.strictSame(signed.texts, ['BUY 10 50', 'SELL 10 60'])
  const refused: [Rows, RegExp][] = [
    [[bought, { ...bought, amount: '500' }], /amounts of this type have both signs/],
    [[bought, { ...sold, amount: '-600' }], /SELL of .*: amount is negative/],
    [[bought, { ...sold, commission: '2' }], /commissions have both signs/],
    [[{ ...bought, amount: null }], /BUY of .*: amount is not known\.$/],
    [[{ ...bought, amount: '-500.0000000000000001' }], /no price that a number of JSON keeps\.$/],
    [[{ ...bought, commission: '-1.1234567890123456' }], /would round 1\.1234567890123456\.$/],
  ]
  for (const [rows, message] of refused)
    t.match((await activitiesOf(await callerWith(...rows))).refusal, message)
})

t.test('a cancellation after rows that contradict each other: refused', async (t) => {
  const stated = { ...common, type: 'COMPENSATION', operation_date_day: '2025-03-01' } as const
  const access = await callerWith(
    { ...common, titles: '80', amount: '800', operation_date_day: '2025-01-02' },
    { ...stated, titles: '40', amount: '4' },
    { ...stated, titles: '100', amount: '10' },
    { ...common, titles: '-80', amount: '800', operation_date_day: '2025-05-02' },
  )
  t.match((await activitiesOf(access)).refusal, /: a row has negative titles\./)
  t.match((await start('beancount', access)).refusal, /: a row has negative titles\./)
})

t.test('prices in per cent, of a contract, in pence: the amount tells the price', async (t) => {
  const access = await callerWith(
    { ...common, titles: '5000', price: '97.25', amount: '4862.50' },
    { ...common, investment: OTHER, titles: '3', price: '2.15', amount: '645', currency: 'USD' },
    {
      ...common,
      investment: '55555555-0000-4000-8000-000000000023',
      ...{ titles: '40', price: '318.5', amount: '127.40', currency: 'GBP' },
      local_currency: 'GBX',
    },
  )
  const { texts } = await activitiesOf(access)
  t.strictSame(texts.sort(), ['BUY 3 215', 'BUY 40 3.185', 'BUY 5000 0.9725'])
  t.equal(await checkGhostfolio(t, access), undefined)
  t.equal(await checkBeancount(t, access), undefined)
})

t.test('a price without an end: two activities that add up to the amount', async (t) => {
  const amounts = [
    ['3', '1000'],
    ['0.7', '100'],
    ['17.123456', '999.99'],
    ['300', '0.10'],
  ] as const
  const rows = amounts.map(([titles, amount], index) => {
    const investment = `3333333${index}-0000-4000-8000-000000000021`
    return { ...common, investment, titles, amount, commission: '1.50' }
  })
  const access = await callerWith(...rows)
  const { texts } = await activitiesOf(access)
  t.equal(texts.length, 2 * amounts.length, texts.join(' and '))
  t.equal(await checkGhostfolio(t, access), undefined)
  t.equal(await checkBeancount(t, access), undefined)
})

t.test('ghostfolio.ts lists each kind of row and tax that is not in the file', async (t) => {
  const { leftOut } = await activitiesOf(
    await callerWith(
      { ...common, titles: '1', amount: '3', taxes: '0.20' },
      { ...common, type: 'UNKNOWN', amount: '7.10' },
      { ...common, type: 'UNKNOWN', amount: '0.05' },
      { ...common, type: 'SPLIT_BUY', titles: '4', amount: null },
      { ...common, titles: '1', amount: '2', investment: null },
      {
        ...{ ...common, type: 'DIVIDENDS', amount: '9', taxes: null },
        ...{ retention_from: '1.5', retention_to: '0.5' },
      },
    ),
  )
  t.strictSame(leftOut, [
    'Left out: BUY without an investment, rows: 1, amount: 2 EUR',
    'Left out: UNKNOWN without an activity of Ghostfolio, rows: 2, amount: 7.15 EUR',
    'Left out: tax retained here of DIVIDENDS, rows: 1, amount: 0.5 EUR',
    'Left out: tax retained of DIVIDENDS, rows: 1, amount: 1.5 EUR',
    'Left out: taxes of BUY, rows: 1, amount: 0.20 EUR',
    'Left out: the value of SPLIT_BUY, whose price is 0, rows: 1, amount: unknown EUR',
  ])
})

const usd = {
  ...{ ...common, currency: 'GBP', local_currency: 'USD' },
  ...{ titles: '10', amount: '900', amount_base_currency: '1116', exchange_rate: '1.24' },
}
const usdSale = {
  ...usd,
  ...{ type: 'SELL' as const, operation_date_day: '2025-06-02' },
  ...{ amount: '1100', amount_base_currency: '1430', exchange_rate: '1.30' },
}

t.test('the base currency is asked for, or proved', async (t) => {
  const access = await callerWith(usd, usdSale)
  const refusal = await checkTaxReports(t, access)
  t.match(refusal, /the base currency may be another one than EUR\. Set BASE_CURRENCY to/)
  t.equal(await checkTaxReports(t, access, { BASE_CURRENCY: 'USD' }), undefined)
  const { output } = await start('typescript', access, { BASE_CURRENCY: 'USD' })
  t.match(output, /, in USD\n2025: gains 314\.00,/)
  const euro = { ...common, investment: OTHER, titles: '1', amount: '50' }
  const proved = await callerWith(usd, usdSale, { ...euro, amount_base_currency: '50.00' })
  t.equal(await checkTaxReports(t, proved), undefined)
  const contradicted = await callerWith(usd, usdSale, { ...euro, amount_base_currency: '58' })
  t.match(await checkTaxReports(t, contradicted), /base currency is not EUR, because/)
})

t.test('a rate that converts nothing, or to a third currency: refused', async (t) => {
  const euro = {
    ...common,
    investment: OTHER,
    titles: '1',
    amount: '50',
    amount_base_currency: '50',
  }
  const dollars = { ...common, currency: 'USD', titles: '2', amount: '10' }
  const refused: [object, RegExp][] = [
    [{ exchange_rate: '1' }, /no rate from USD to EUR\. exchangeRate is 1, so nothing was conv/],
    [{ exchange_rate: '1.00' }, /exchangeRate is 1\.00, so nothing was converted/],
    [{ exchange_rate: '0.8', local_currency: 'GBP' }, /exchangeRate may be that to GBP/],
    [{ exchange_rate: null }, /no rate from USD to EUR\.$/],
    [{ currency: null }, /no rate from no currency to EUR\.$/],
  ]
  for (const [values, message] of refused)
    t.match(await checkTaxReports(t, await callerWith(euro, { ...dollars, ...values })), message)
})

t.test('the tax reports list coupons, interest, fees and taxes in other places', async (t) => {
  const caller = await addCaller(service.db)
  const paid = { ...common, type: 'DIVIDENDS', amount: '30', taxes: null } as const
  await addPortfolioTransactions(
    service.db,
    caller.connection,
    { ...common, type: 'COUPON', amount: '12.50', currency: 'USD' },
    { ...paid, retention_from: '4.50', retention_to: '1' },
  )
  await addAccountTransactions(
    service.db,
    caller.connection,
    { type: 'INTEREST', amount: '1.10', currency: 'USD' },
    { type: 'INTEREST', amount: '2.20', currency: 'USD' },
    { type: 'FEES', amount: '-3', currency: 'EUR' },
    { type: 'DIVIDENDS', amount: '24.50', currency: 'EUR', taxes: '5.50' },
  )
  const access = accessOf(caller)
  t.equal(await checkTaxReports(t, access), undefined)
  const { leftOut } = await start('typescript', access)
  t.strictSame(leftOut, [
    'Left out: account FEES, rows: 1, amount: -3 EUR',
    'Left out: account INTEREST, rows: 2, amount: 3.30 USD',
    'Left out: portfolio COUPON, rows: 1, amount: 12.50 USD',
    'Left out: retentionFrom of portfolio DIVIDENDS, rows: 1, amount: 4.50 EUR',
    'Left out: retentionTo of portfolio DIVIDENDS, rows: 1, amount: 1 EUR',
    'Left out: taxes of account DIVIDENDS, rows: 1, amount: 5.50 EUR',
    'Left out: unknown taxes of portfolio DIVIDENDS, rows: 1, amount: unknown EUR',
  ])
})

/** A merger, and a dividend in shares. */
const COMPLEX_STORIES = ['merger', 'scrip']

t.test('the sample data: exact, or refused', async (t) => {
  const { connections } = DEMO.wealth
  const stories = JSON.parse(await readFile('seeds/expected.json', 'utf8'))
  for (const [name, { token }] of Object.entries(connections)) {
    // Of the other stories, clients/beancount finds each amount, and typescript-client/sandbox the figures of the tax reports.
    const needsAll = isNightly || !(token in stories) || COMPLEX_STORIES.includes(name)
    const checks = needsAll ? ALL : { ghostfolio: checkGhostfolio }
    const access = { token: DEMO_TOKEN, connection: token }
    await checkAll(t, name, access, { checks, env: { BASE_CURRENCY: 'EUR' } })
  }
})

const all = found.filter((entry) => entry.isDirectory())
// For a change, each tenth source.
const every = Math.ceil(all.length / runs(all.length))
const sources = all.filter((_, index) => index % every === 0)
for (const source of sources) {
  const path = join(String(real), source.name)
  t.test(`${source.name}: exact, or refused`, async (t) => {
    const caller = await addCaller(service.db)
    for (const file of await readdir(path)) {
      const type = file.replace('.ndjson', '') as 'portfolio-transactions'
      const inputs = [await openInput(join(path, file))]
      const connectionId = caller.connection.id
      await importRows(pool, { type, connectionId, sources: inputs })
    }
    await checkAll(t, source.name, accessOf(caller))
  })
}
