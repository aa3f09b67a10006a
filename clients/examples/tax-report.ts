/**
 * Reports realised gains by FIFO, dividends and withheld taxes of each year, in BASE_CURRENCY or euros.
 * Run: node clients/examples/tax-report.ts
 * It keeps a copy in the file COPY, and reads only the changes the next time. It lists what it leaves out.
 */
import { DatabaseSync } from 'node:sqlite'
import {
  checkPositions,
  type Decimal,
  effectiveDay,
  InvestmentData,
  InvestmentDataError,
  positionEffect,
  type RowChanges,
  SqliteStore,
  sum,
} from '../typescript/src/index.ts'
import { gainsByFifo } from './fifo.ts'
import { Fraction } from './fraction.ts'
import { Rates, type Row } from './rates.ts'

const {
  BASE_URL = 'http://127.0.0.1:3000',
  APP_TOKEN = 'idq_demo_wealth_this_token_is_public',
  CONNECTION_TOKEN = 'DEMOSMALL1',
  COPY = 'tax-report.db',
  BASE_CURRENCY,
} = process.env
const store = new SqliteStore(new DatabaseSync(COPY), 'my user')
const NONE = { gain: Fraction.ZERO, gross: Fraction.ZERO, net: Fraction.ZERO, tax: Fraction.ZERO }
const years = new Map<string, typeof NONE>()

function onChanges({ list, previous }: RowChanges): void {
  if (list === 'transfer_orders') return
  for (const row of previous.values())
    console.log(`  corrected or removed: ${row.type} of ${effectiveDay(row)}`)
}

/** Amounts that are in no figure of the report, by what they are and their currency. */
const leftOut = new Map<string, (Decimal | null)[]>()

function leaveOut(what: string, row: Row, amount: Decimal | null): void {
  const key = `${what}\t${row.currency ?? 'of no currency'}`
  leftOut.set(key, [...(leftOut.get(key) ?? []), amount])
}

/** Prints how many rows of each kind are in no figure, and the sum of what is known of them. */
function printLeftOut(): void {
  for (const [key, amounts] of [...leftOut].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [what, currency] = key.split('\t')
    const known = amounts.filter((amount) => amount !== null)
    const total = known.length === 0 ? 'unknown' : sum(known)
    console.log(`Left out: ${what}, rows: ${amounts.length}, amount: ${total} ${currency}`)
  }
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
  const rates = new Rates(store.portfolioTransactions(), BASE_CURRENCY)
  const gains = new Map(gainsByFifo(store.portfolioTransactions(), rates))
  const paid = new Set([...gains.keys()].map((row) => row.transactionId))
  for (const [row, gain] of gains) add(row, 'gain', gain)
  for (const row of store.portfolioTransactions()) {
    const { type, amount, taxes, commission, retentionDetail: retained } = row
    if (type !== 'DIVIDENDS') {
      const isTrade = ['+', '-'].includes(positionEffect(type) ?? '')
      if (!isTrade && !paid.has(row.transactionId)) leaveOut(`portfolio ${type}`, row, amount)
      continue
    }
    add(row, 'gross', rates.convert(row, 'amount'))
    add(row, 'tax', rates.convert(row, 'taxes'))
    if (taxes === null) leaveOut('unknown taxes of portfolio DIVIDENDS', row, null)
    if (commission) leaveOut('commission of portfolio DIVIDENDS', row, commission)
    if (retained) leaveOut('retentionFrom of portfolio DIVIDENDS', row, retained.retentionFrom)
    if (retained) leaveOut('retentionTo of portfolio DIVIDENDS', row, retained.retentionTo)
  }
  for (const row of store.accountTransactions()) {
    const { type, amount, taxes, commission } = row
    if (type === 'DIVIDENDS') add(row, 'net', rates.convert(row, 'amount'))
    else leaveOut(`account ${type}`, row, amount)
    if (taxes) leaveOut(`taxes of account ${type}`, row, taxes)
    if (commission) leaveOut(`commission of account ${type}`, row, commission)
  }

  const day = store.refreshedAt()?.toISOString().slice(0, 10) ?? 'an unknown day'
  console.log(`Data of ${day}, in ${rates.currency}`)
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
  printLeftOut()
}

await main().catch((error) => {
  // The user has removed the connection.
  if (error instanceof InvestmentDataError && error.code === 'connection_not_found') store.delete()
  console.error(error.message)
  process.exitCode = 1
})
