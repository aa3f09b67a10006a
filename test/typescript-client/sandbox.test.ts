import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isNightly } from '../nightly.ts'
import { startDrivers } from '../support/clients/drivers.ts'
import { PYTHON, pythonEnvironment } from '../support/clients/python.ts'
import { operatorHere } from '../support/operator-process.ts'
import { run } from '../support/programs.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'
import { expireCursors } from '../support/state.ts'

/** The stories of the sample data, as the clients and the tax reports see them. */
interface State {
  day: string
  afterDays: number
  positions: { portfolioId: string; investment: string; titles: Record<string, string> }[]
  years: Record<
    string,
    Record<'realisedGain' | 'dividendsGross' | 'dividendsNet' | 'withheldTax', string>
  >
  firstGap?: {
    portfolioId: string
    investment: string
    day: string
    expected: string
    found: string
  }
}

const ROOT = join(import.meta.dirname, '../..')
const path = join(ROOT, 'seeds/expected.json')
const expected = JSON.parse(await readFile(path, 'utf8')) as Record<string, State[]>
const service = await startSeededService(t)
const clients = Object.entries(startDrivers(t))
const folder = t.testdir({})
/** Each report is a process: without CLIENTS=all, only of the stories that move or have a gap. */
const reported = Object.entries(expected).filter(
  ([, [first, second]]) => process.env.CLIENTS === 'all' || second || first?.firstGap,
)

/** Currency of the base amounts of the sample data: docs/sandbox.md. */
const BASE = { BASE_CURRENCY: 'EUR' }

const reports: Record<string, (env: Record<string, string>) => Promise<string>> = {
  TypeScript: (env) => {
    const program = join(ROOT, 'clients/examples/tax-report.ts')
    const args = ['--disable-warning=ExperimentalWarning', program]
    return run(process.execPath, args, { env: { ...BASE, ...env } })
  },
  Python: (env) => {
    const program = join(ROOT, 'clients/examples/tax_report.py')
    return run(PYTHON, [program], { env: { ...pythonEnvironment, ...BASE, ...env } })
  },
}

function checkReport(t: Test, printed: string, { years, firstGap }: State): void {
  const lines = printed.trim().split('\n')
  const wanted = Object.entries(years).map(([year, figures]) => {
    const dividends = `dividends ${figures.dividendsGross} gross and ${figures.dividendsNet} net`
    return `${year}: gains ${figures.realisedGain}, ${dividends}, withheld ${figures.withheldTax}`
  })
  t.strictSame(
    lines.filter((line) => /^\d{4}: /.test(line)),
    wanted,
  )
  const gaps = lines.filter((line) => / gap: /.test(line))
  const { portfolioId, investment, expected, found, day } = firstGap ?? {}
  const gap = `${portfolioId} ${investment} gap: expected ${expected}, found ${found} on ${day}`
  t.strictSame(gaps, firstGap ? [gap] : [])
}

for (const [language, client] of clients) {
  const report = reports[language]
  t.test(`${language}: positions of each story, and where they have a gap`, async (t) => {
    for (const [token, [state]] of Object.entries(expected)) {
      const file = join(folder, `${language} ${token}.db`)
      const access = { url: service.url, token: DEMO_TOKEN, connection: token }
      await client.copy(access, file, 'mine')
      const checks = await client.read(file, 'mine', 'checks')
      const gaps = checks.filter(({ status }) => status === 'gap')
      t.strictSame(
        gaps.map(({ portfolioId, investment, firstGap }) => {
          return { portfolioId, investment, ...(firstGap as object) }
        }),
        state?.firstGap ? [state.firstGap] : [],
        token,
      )
      const positions = new Map<string, bigint>()
      for (const row of await client.read(file, 'mine', 'chronological')) {
        const change = effectOf(String(row.type)) * unitsOf(String(row.titles ?? '0'))
        const key = `${row.portfolioId} ${row.investment}`
        const position = (positions.get(key) ?? 0n) + change
        t.ok(position >= 0n, `${token}: ${row.operationDateDay} ${row.type}`)
        positions.set(key, position)
      }
      for (const { portfolioId, investment, titles } of state?.positions ?? []) {
        const last = Object.values(titles).at(-1) ?? '0'
        t.equal(positions.get(`${portfolioId} ${investment}`), unitsOf(last), token)
      }
    }
  })
  if (report === undefined) continue

  t.test(`${language}: the tax report of each story`, async (t) => {
    for (const [token, [state]] of reported) {
      const COPY = join(folder, `${language} ${token} report.db`)
      const env = { BASE_URL: service.url, CONNECTION_TOKEN: token, COPY }
      const printed = await report(env)
      t.match(
        printed,
        /^Changes since the last run:\n {2}portfolio: \d+ new, 0 corrected, 0 removed\n/,
      )
      if (state) checkReport(t, printed, state)
      t.comment(`${language}, ${token}:\n${printed}`)
    }
  })
}

const STEP = 40
function unitsOf(text: string): bigint {
  const [whole = '0', digits = ''] = text.split('.')
  return BigInt(whole + digits.padEnd(STEP, '0'))
}

/** Section 2.4 of the specification for the types of the stories. */
function effectOf(type: string): bigint {
  if (/_BUY$|_IN$|^(BUY|RIGHTS_ISSUE|SPINOFF)$/.test(type)) return 1n
  return /_SELL$|_OUT$|^(SELL|DELISTING|RIGHTS_EXCLUSION)$/.test(type) ? -1n : 0n
}

t.test(
  'the stories move: each tax report says what has changed, and has the new figures',
  async (t) => {
    const moving = Object.entries(expected).filter(([, states]) => states.length > 1)
    let day = 0
    for (const after of [
      ...new Set(moving.flatMap(([, states]) => states.map(afterDaysOf))),
    ].sort()) {
      if (after > day) {
        const args = ['demo', 'advance', '--days', String(after - day)]
        const ended = await operatorHere(args, { DATABASE_URL: service.databaseUrl })
        t.equal(ended.code, 0, ended.stderr)
        day = after
      }
      for (const [token, states] of moving) {
        // Except at night, only the reports whose figures change.
        const changes = states.some(({ afterDays }) => afterDays === day)
        if (!isNightly && (day === 0 || !changes)) continue
        for (const [language, report] of Object.entries(reports)) {
          if (!clients.some(([name]) => name === language)) continue
          const COPY = join(folder, `${language} ${token} report.db`)
          const printed = await report({ BASE_URL: service.url, CONNECTION_TOKEN: token, COPY })
          const state = states.findLast(({ afterDays }) => afterDays <= day)
          if (state) checkReport(t, printed, state)
          if (day > 0) t.match(printed, /^Data of 20\d\d-\d\d-\d\d, in EUR$/m)
          if (states.some(({ afterDays }) => day > 0 && afterDays === day)) {
            const changed = printed.split(/^Data of/m)[0]?.match(/(?<=^ {2}).+(?=$)/gm)
            t.strictSame(changed, CHANGES[token], token)
            t.comment(`${language}, ${token}, day ${day}:\n${printed}`)
          }
        }
      }
    }
  },
)

const UNCHANGED = 'orders: 0 new, 0 corrected, 0 removed'
/** What the reports say of the changes on the day of each story: docs/sandbox.md. */
const CHANGES: Record<string, string[]> = {
  DEMOLATE1: [
    'portfolio: 1 new, 0 corrected, 0 removed',
    'account: 0 new, 0 corrected, 0 removed',
    UNCHANGED,
  ],
  DEMOCORRECTION1: [
    'corrected or removed: SELL of 2025-10-20',
    'portfolio: 0 new, 1 corrected, 0 removed',
    'account: 0 new, 0 corrected, 0 removed',
    UNCHANGED,
  ],
  DEMOCANCEL1: [
    'corrected or removed: SELL of 2025-12-11',
    'corrected or removed: FEES of 2025-12-11',
    'portfolio: 0 new, 0 corrected, 1 removed',
    'account: 0 new, 0 corrected, 1 removed',
    UNCHANGED,
  ],
  DEMOUNKNOWN1: [
    'corrected or removed: UNKNOWN of 2025-10-06',
    'corrected or removed: UNKNOWN of 2025-07-07',
    'portfolio: 0 new, 1 corrected, 0 removed',
    'account: 0 new, 1 corrected, 0 removed',
    UNCHANGED,
  ],
}

for (const [language, report] of Object.entries(reports)) {
  if (!clients.some(([name]) => name === language)) continue
  t.test(`${language}: a tax report after a 410: a new copy, and no changes`, async (t) => {
    const COPY = join(folder, `${language} expired.db`)
    const env = { BASE_URL: service.url, COPY, CONNECTION_TOKEN: 'DEMOMERGER1' }
    const before = await report(env)
    await expireCursors(service.db)
    const after = await report(env)
    t.match(after, /^ {2}portfolio: 0 new, 0 corrected, 0 removed$/m)
    const [, figures] = before.split(/^Data of/m)
    t.equal(after.split(/^Data of/m)[1], figures)
  })
}

function afterDaysOf({ afterDays }: State): number {
  return afterDays
}

for (const [language, report] of Object.entries(reports)) {
  if (!clients.some(([name]) => name === language)) continue
  t.test(`${language}: a tax report of a removed connection deletes its copy`, async (t) => {
    const COPY = join(folder, `${language} removed.db`)
    const env = { BASE_URL: service.url, COPY }
    await report({ ...env, CONNECTION_TOKEN: 'DEMOSPLIT1' })
    const client = Object.fromEntries(clients)[language]
    t.not((await client?.read(COPY, 'my user', 'portfolio'))?.length, 0)
    await t.rejects(report({ ...env, CONNECTION_TOKEN: 'DEMOOTHER1' }), /connection_not_found/)
    t.equal((await client?.read(COPY, 'my user', 'portfolio'))?.length, 0)
  })

  t.test(
    `${language}: a tax report refuses numbers whose meaning the rules do not know`,
    async (t) => {
      const trade = {
        operation_date_day: '2025-02-03',
        titles: '10',
        amount: '50',
        currency: 'EUR',
      }
      const dollars = { currency: 'USD', exchange_rate: null }
      const [out, shares] = [randomUUID(), randomUUID()]
      const held = { portfolio_id: randomUUID(), investment: randomUUID() }
      const merger = { ...trade, ...held, amount: null }
      const cases: [Parameters<typeof addPortfolioTransactions>[2][], string][] = [
        [[{ ...trade, type: 'SELL', titles: '-10' }], 'SELL of 2025-02-03: titles is negative'],
        [
          [{ ...trade, type: 'BUY', commission: '-0.50' }],
          'BUY of 2025-02-03: commission is negative',
        ],
        [
          [{ ...trade, type: 'DIVIDENDS', taxes: '-9' }],
          'DIVIDENDS of 2025-02-03: taxes is negative',
        ],
        [[{ ...trade, ...dollars, type: 'BUY' }], 'BUY of 2025-02-03: no rate from USD to EUR'],
        [
          [
            { ...trade, type: 'BUY', titles: '40' },
            { ...trade, type: 'BUY', titles: '-40' },
          ],
          'BUY of 2025-02-03: titles is negative',
        ],
        [
          [
            { ...trade, ...held, type: 'BUY' },
            { ...trade, ...held, type: 'UNKNOWN', titles: '-10' },
          ],
          'UNKNOWN of 2025-02-03: titles is negative',
        ],
        [
          [{ ...trade, ...dollars, type: 'BUY', exchange_rate: '0.92', commission: '10' }],
          'BUY of 2025-02-03: exchangeRate 0.92 may be a divisor or a factor, and no row',
        ],
        [
          [
            { ...trade, ...dollars, type: 'BUY', exchange_rate: '0.5', amount_base_currency: '25' },
            { ...trade, ...dollars, type: 'BUY', exchange_rate: '2', amount_base_currency: '25' },
            { ...trade, ...dollars, type: 'BUY', exchange_rate: '2' },
          ],
          'BUY of 2025-02-03: exchangeRate 2 may be a divisor or a factor, and the rows of',
        ],
        [[{ ...trade, type: 'SELL' }], 'SELL of 2025-02-03: more shares leave than had arrived'],
        [
          [
            { ...merger, type: 'BUY', amount: '50' },
            { ...merger, type: 'MERGER_SELL', transaction_id: out, related_transaction: shares },
            { ...merger, type: 'MERGER_BUY', transaction_id: shares, related_transaction: out },
            { ...merger, type: 'COMPENSATION', related_transaction: out },
          ],
          'COMPENSATION of 2025-02-03: neither cash nor shares have an amount',
        ],
      ]
      for (const [index, [rows, sentence]] of cases.entries()) {
        const { token, connection } = await addCaller(service.db)
        await addPortfolioTransactions(service.db, connection, ...rows.map((row) => row ?? {}))
        const COPY = join(folder, `${language} refused ${index}.db`)
        const env = { BASE_URL: service.url, APP_TOKEN: token, CONNECTION_TOKEN: connection.token }
        // One sentence, and no stack.
        const message = new RegExp(`^Command failed: .*\n${sentence}.*\n`)
        const error = await report({ ...env, COPY }).catch(
          (error: Error & { code: number }) => error,
        )
        t.match(error, { code: 1, message }, sentence)
        t.notMatch(String((error as Error).message), /\n\s+(at |File )/)
      }
    },
  )

  t.test(`${language}: a tax report takes the direction of a rate from base amounts`, async (t) => {
    const base = {
      currency: 'USD',
      exchange_rate: '0.92',
      titles: '10',
      commission: '10',
      investment: randomUUID(),
      portfolio_id: randomUUID(),
    }
    const { token, connection } = await addCaller(service.db)
    await addPortfolioTransactions(
      service.db,
      connection,
      { ...base, type: 'BUY', operation_date_day: '2024-01-10', amount: '1000' },
      { ...base, type: 'SELL', operation_date_day: '2024-09-10', amount: '1200' },
      // Another investment tells that the rate is a factor: 500 USD are 460 EUR.
      {
        ...base,
        type: 'BUY',
        operation_date_day: '2024-09-11',
        amount: '500',
        amount_base_currency: '460.00',
        investment: randomUUID(),
      },
    )
    const COPY = join(folder, `${language} rates.db`)
    const env = { BASE_URL: service.url, APP_TOKEN: token, CONNECTION_TOKEN: connection.token }
    t.match(await report({ ...env, COPY }), /^2024: gains 165\.60, /m)
  })
}
