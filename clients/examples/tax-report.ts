/**
 * Reports realised gains by FIFO, dividends and withheld taxes of each year, in euros.
 * Run: node clients/examples/tax-report.ts
 * It keeps a copy in the file COPY, and reads only the changes the next time.
 */
import { DatabaseSync } from 'node:sqlite'
import {
  checkPositions,
  effectiveDay,
  InvestmentData,
  InvestmentDataError,
  type RowChanges,
  SqliteStore,
} from '../typescript/src/index.ts'
import { gainsByFifo } from './fifo.ts'
import { Fraction } from './fraction.ts'
import { Rates, type Row } from './rates.ts'

const {
  BASE_URL = 'http://127.0.0.1:3000',
  APP_TOKEN = 'idq_demo_wealth_this_token_is_public',
  CONNECTION_TOKEN = 'DEMOSMALL1',
  COPY = 'tax-report.db',
} = process.env
const store = new SqliteStore(new DatabaseSync(COPY), 'my user')
const NONE = { gain: Fraction.ZERO, gross: Fraction.ZERO, net: Fraction.ZERO, tax: Fraction.ZERO }
const years = new Map<string, typeof NONE>()

function onChanges({ list, previous }: RowChanges): void {
  if (list === 'transfer_orders') return
  for (const row of previous.values())
    console.log(`  corrected or removed: ${row.type} of ${effectiveDay(row)}`)
}

function add(row: Row, column: keyof typeof NONE, amount: Fraction): void {
  const year = effectiveDay(row).slice(0, 4)
  const sums = years.get(year) ?? NONE
  years.set(year, { ...sums, [column]: sums[column].plus(amount) })
}

async function main(): Promise<void> {
  const api = new InvestmentData({ baseUrl: BASE_URL, token: APP_TOKEN })
  console.log('Changes since the last run:')
  const synced = await api.connection(CONNECTION_TOKEN).syncTransactions(store, { onChanges })
  for (const [list, { inserted, updated, removed }] of Object.entries(synced))
    console.log(`  ${list}: ${inserted} new, ${updated} corrected, ${removed} removed`)
  const rates = new Rates(store.portfolioTransactions())
  for (const [row, gain] of gainsByFifo(store.portfolioTransactions(), rates))
    add(row, 'gain', gain)
  for (const row of store.portfolioTransactions()) {
    if (row.type !== 'DIVIDENDS') continue
    add(row, 'gross', rates.euros(row, 'amount'))
    add(row, 'tax', rates.euros(row, 'taxes'))
  }
  for (const row of store.accountTransactions())
    if (row.type === 'DIVIDENDS') add(row, 'net', rates.euros(row, 'amount'))

  console.log('Data of', store.refreshedAt()?.toISOString().slice(0, 10) ?? 'an unknown day')
  for (const [year, { gain, gross, net, tax }] of [...years].sort()) {
    const dividends = `dividends ${gross.cents} gross and ${net.cents} net`
    console.log(`${year}: gains ${gain.cents}, ${dividends}, withheld ${tax.cents}`)
  }
  for (const { portfolioId, investment, ...check } of checkPositions(store)) {
    const { status, verifiedFrom, firstGap: gap } = check
    const found = gap && `gap: expected ${gap.expected}, found ${gap.found} on ${gap.day}`
    const text = status === 'complete' ? `complete since ${verifiedFrom}` : status
    console.log(portfolioId, investment, found ?? text)
  }
}

await main().catch((error) => {
  // The user has removed the connection.
  if (error instanceof InvestmentDataError && error.code === 'connection_not_found') store.delete()
  console.error(error.message)
  process.exitCode = 1
})
