import type { AccountTransaction } from '../src/schemas/account-transaction.ts'
import type { PortfolioTransaction } from '../src/schemas/portfolio-transaction.ts'
import type { AssetsTransferOrder } from '../src/schemas/transfer-order.ts'

type ImportRow<Row, Required extends keyof Row> = Partial<Row> & Pick<Row, Required>

/** Rows of an import: unknown fields are absent, decimals are strings. */
export type PortfolioRow = ImportRow<PortfolioTransaction, 'transactionId' | 'portfolioId' | 'type'>
export type AccountRow = ImportRow<
  AccountTransaction,
  'movementId' | 'accountId' | 'type' | 'amount'
>
/** `completedAt` is null for an unfinished order. */
export type OrderRow = ImportRow<AssetsTransferOrder, 'id'> & { completedAt: string | null }

export interface ConnectionRows {
  portfolio: PortfolioRow[]
  account: AccountRow[]
  orders: OrderRow[]
}

/** Decimal of an integer and a scale of at least 1: `decimalText(-12345n, 2)` is `-123.45`. */
export function decimalText(digits: bigint, scale: number): string {
  const sign = digits < 0n ? '-' : ''
  const text = String(digits < 0n ? -digits : digits).padStart(scale + 1, '0')
  return `${sign}${text.slice(0, -scale)}.${text.slice(-scale)}`
}

const DECIMALS = new Set([
  'exchangeRate',
  'titles',
  'amount',
  'amountBaseCurrency',
  'commission',
  'taxes',
  'price',
  'retentionFrom',
  'retentionTo',
])

/**
 * Writes the refresh of a connection as one line of newline-delimited JSON, with all digits of decimals.
 * @param from first day of the rows to replace; by default all
 */
export function refreshLine(connection: string, rows: ConnectionRows, from?: string): Buffer {
  const list = (items: object[]) => `[${items.map(jsonOf).join()}]`
  const recent = <Row extends PortfolioRow | AccountRow>(items: Row[]) =>
    from === undefined ? items : items.filter((row) => String(row.operationDateDay) >= from)
  const members = [
    `"connection":"${connection}"`,
    `"portfolioTransactions":${list(recent(rows.portfolio))}`,
    `"accountTransactions":${list(recent(rows.account))}`,
    `"transferOrders":${list(rows.orders)}`,
    `"replace":${JSON.stringify({ from, yes: true })}`,
  ]
  return Buffer.from(`{${members.join()}}\n`)
}

function jsonOf(row: object): string {
  const members = Object.entries(row).map(([name, value]) => {
    const nested = typeof value === 'object' && value !== null
    const text = nested ? jsonOf(value) : DECIMALS.has(name) ? value : JSON.stringify(value)
    return `${JSON.stringify(name)}:${text}`
  })
  return `{${members.join(',')}}`
}
