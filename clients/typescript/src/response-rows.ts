import type { ListName } from './copy.ts'
import { UnusableResponse } from './response-body.ts'
import { COLUMNS, type Column } from './rows.ts'

/** Fields that are never null. */
const KNOWN = ['transactionId', 'portfolioId', 'movementId', 'accountId', 'id', 'type']

type Fields = Record<string, unknown>

/** Fields of a row; `inner` is one of an object, which is the value of `name`. */
const FIELDS = {
  portfolio_transactions: COLUMNS.portfolio_transactions.map(fieldOf),
  account_transactions: COLUMNS.account_transactions.map(fieldOf),
  transfer_orders: [{ path: 'id', kind: 'text' } as const, ...COLUMNS.transfer_orders].map(fieldOf),
}

function fieldOf({ path, kind }: Pick<Column, 'path' | 'kind'>) {
  const [name = '', inner] = path.split('.')
  return { name, inner, kind }
}

/** @throws UnusableResponse for a row without one of its fields, or with a value of another type */
export function checkRow(list: ListName, row: unknown): void {
  if (!isObject(row)) throw new UnusableResponse('A row of the response is no object')
  for (const { name, inner, kind } of FIELDS[list]) {
    if (inner === undefined) checkField(row, name, kind)
    else if (isObject(row[name])) checkField(row[name], inner, kind)
    else if (row[name] !== null) throw noField(name)
  }
}

/** @throws UnusableResponse for a page of a list, or of its changes, that is none */
export function checkPage(list: ListName, page: unknown, isOfChanges: boolean): void {
  const body = isObject(page) ? page : {}
  const { items, totalItems, limit, removed, nextCursor, hasMore } = body
  if (!Array.isArray(items)) throw noProperty('items')
  if (!isCount(totalItems)) throw noProperty('totalItems')
  for (const row of items) checkRow(list, row)
  if (!isOfChanges) {
    // The pages of a limit of 0 would never end.
    if (!isCount(limit) || limit === 0) throw noProperty('limit')
    return
  }
  if (!Array.isArray(removed) || !removed.every((id) => typeof id === 'string'))
    throw noProperty('removed')
  if (typeof nextCursor !== 'string') throw noProperty('nextCursor')
  if (typeof hasMore !== 'boolean') throw noProperty('hasMore')
}

/** @throws UnusableResponse for orders that are none */
export function checkOrders(orders: unknown): void {
  if (!Array.isArray(orders)) throw new UnusableResponse('The response is no list')
  for (const row of orders) checkRow('transfer_orders', row)
}

function checkField(row: Fields, name: string, kind: Column['kind']): void {
  const value = row[name]
  const isValid = value === null ? !KNOWN.includes(name) : isOfKind(value, kind)
  if (!isValid) throw noField(name)
}

function isOfKind(value: unknown, kind: Column['kind']): boolean {
  if (kind === 'boolean') return typeof value === 'boolean'
  return typeof value === 'string' && (kind === 'text' || /^-?\d+(\.\d+)?$/.test(value))
}

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0

const noField = (name: string) => new UnusableResponse(`A row of the response has no valid ${name}`)
const noProperty = (name: string) => new UnusableResponse(`The response has no valid ${name}`)
