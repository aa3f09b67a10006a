import type { AccountTransaction } from '../src/schemas/account-transaction.ts'
import type { PortfolioTransaction } from '../src/schemas/portfolio-transaction.ts'
import type { AssetsTransferOrder } from '../src/schemas/transfer-order.ts'

type Given<Row, Needed extends keyof Row> = Partial<Row> & Pick<Row, Needed>

/** Rows as the import reads them: what is not known is left out, decimals are text. */
export type PortfolioRow = Given<PortfolioTransaction, 'transactionId' | 'portfolioId' | 'type'>
export type AccountRow = Given<AccountTransaction, 'movementId' | 'accountId' | 'type' | 'amount'>
/** `completedAt` is null for an order that the user has not completed. */
export type OrderRow = Given<AssetsTransferOrder, 'id'> & { completedAt: string | null }

export interface ConnectionRows {
  portfolio: PortfolioRow[]
  account: AccountRow[]
  orders: OrderRow[]
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

/** A row as one line of newline-delimited JSON; decimals are written digit for digit. */
export function lineOf(row: object): string {
  return `${jsonOf(row)}\n`
}

function jsonOf(row: object): string {
  const members = Object.entries(row).map(([name, value]) => {
    const nested = typeof value === 'object' && value !== null
    const text = nested ? jsonOf(value) : DECIMALS.has(name) ? value : JSON.stringify(value)
    return `${JSON.stringify(name)}:${text}`
  })
  return `{${members.join(',')}}`
}
