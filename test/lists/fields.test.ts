import { randomUUID } from 'node:crypto'
import t from 'tap'
import * as rows from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)
const ids = Array.from({ length: 4 }, () => randomUUID())
const [ownId, holderId, investment, related] = ids as [string, string, string, string]

// In the order of sections 2.2 and 2.3, not imported from the schemas.
const dates = {
  operationDateDay: '2024-02-29',
  originalOperationDateDay: '2024-03-01',
  valueDateDay: '2024-03-02',
  originalValueDateDay: '2024-03-03',
  operationDateHour: '23:59:59',
  originalOperationDateHour: '00:59:59',
  valueDateHour: '00:00:00',
  originalValueDateHour: 'at noon',
  originalOperationDateTz: 'Europe/Madrid',
  originalValueDateTz: 'CET, perhaps',
}

const portfolioTransaction = {
  transactionId: ownId,
  portfolioId: holderId,
  exchangeRate: 1.5,
  type: 'SELL',
  titles: -3,
  amount: 0,
  amountBaseCurrency: 0.25,
  commission: 4,
  taxes: 5,
  currency: 'EUR',
  localCurrency: 'GBX',
  description: 'ñ "x" \\ \n 漢字 😀',
  price: 6,
  ...dates,
  investment,
  relatedTransaction: related,
  retentionDetail: { retentionFrom: 7, retentionTo: 0 },
}

const accountTransaction = {
  movementId: ownId,
  accountId: holderId,
  type: 'FEES',
  amount: -1.5,
  exchangeRate: 1,
  commission: 2,
  taxes: 0,
  currency: 'EUR',
  localCurrency: 'USD',
  description: '',
  ...dates,
  investment,
}

const transferOrder = {
  id: ownId,
  portfolio: 'P-1',
  investment,
  name: 'Fondo Ñ',
  isin: 'ES0000000000',
  currency: 'EUR',
  assetType: 'SOMETHING_NEW',
  titles: 1.5,
  amount: 0,
  total: false,
  marketer: { name: 'M', cif: 'A1' },
  managementCompany: { name: 'C', cif: '' },
}

/** Columns of the row that the service returns as this item. */
function columns(item: object): Record<string, unknown> {
  const entries = Object.entries(item).flatMap(([name, value]): [string, unknown][] => {
    // The columns of a null group are null, the default of a column.
    if (value === null) return []
    if (typeof value !== 'object') return [[snake(name), value]]
    return Object.entries(value).map(([member, part]) => [
      name === 'retentionDetail' ? snake(member) : `${snake(name)}_${member}`,
      part,
    ])
  })
  return Object.fromEntries(entries)
}

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Items of a response as text, with the order of the fields and all digits. */
const itemsOf = (text: string) => text.slice(text.indexOf('['), text.lastIndexOf(']') + 1)

t.test('portfolio transaction: every field, in order (section 2.2, contract 10)', async (t) => {
  const { token, connection } = await rows.addCaller(db)
  await rows.addPortfolioTransactions(db, connection, columns(portfolioTransaction))
  const { text } = await get(connection.portfolio, { token })
  t.equal(itemsOf(text), JSON.stringify([portfolioTransaction]))
})

t.test('account transaction: every field, in order (section 2.3, contract 10)', async (t) => {
  const { token, connection } = await rows.addCaller(db)
  await rows.addAccountTransactions(db, connection, columns(accountTransaction))
  const { text } = await get(connection.account, { token })
  t.equal(itemsOf(text), JSON.stringify([accountTransaction]))
})

t.test('transfer order: every field, in order (section 2.7, contract 10)', async (t) => {
  const { token, connection } = await rows.addCaller(db)
  await rows.addTransferOrders(db, connection, columns(transferOrder))
  const { text } = await get(connection.orders, { token })
  t.equal(text, JSON.stringify([transferOrder]))
})

/** The same item with null in all other fields than those kept. */
function sparse(item: object, kept: object): object {
  return Object.fromEntries(
    Object.keys(item).map((name) => [name, (kept as Record<string, unknown>)[name] ?? null]),
  )
}

t.test('unknown fields and groups: null, not absent (contract 10)', async (t) => {
  const { token, connection } = await rows.addCaller(db)
  const day = { valueDateDay: '2024-02-29' }
  const bare = {
    portfolio: { transactionId: ownId, portfolioId: holderId, type: 'UNKNOWN', ...day },
    account: { movementId: ownId, accountId: holderId, type: 'UNKNOWN', amount: 0, ...day },
    orders: { id: ownId },
  }
  await rows.addPortfolioTransactions(db, connection, columns(bare.portfolio))
  await rows.addAccountTransactions(db, connection, columns(bare.account))
  await rows.addTransferOrders(db, connection, columns(bare.orders))
  const whole = {
    portfolio: portfolioTransaction,
    account: accountTransaction,
    orders: transferOrder,
  }
  for (const name of ['portfolio', 'account', 'orders'] as const) {
    const { text } = await get(connection[name], { token })
    t.equal(itemsOf(text), JSON.stringify([sparse(whole[name], bare[name])]), name)
  }
})

t.test('each nullable field: null on its own (contract 10)', async (t) => {
  for (const [path, item, add] of [
    ['portfolio', portfolioTransaction, rows.addPortfolioTransactions],
    ['account', accountTransaction, rows.addAccountTransactions],
    ['orders', transferOrder, rows.addTransferOrders],
  ] as const) {
    const never = ['transactionId', 'portfolioId', 'type', 'movementId', 'accountId', 'id']
    if (path === 'account') never.push('amount')
    const { token, connection } = await rows.addCaller(db)
    const id = Object.keys(item)[0] as string
    const variants = Object.keys(item)
      .filter((name) => !never.includes(name))
      .map((name) => ({ ...item, [id]: randomUUID(), [name]: null }))
    await add(db, connection, ...variants.map((variant) => columns(variant)))
    const { text } = await get(connection[path], { token })
    const [got, wanted] = [JSON.parse(itemsOf(text)), variants].map((all) =>
      all.toSorted((a: Record<string, string>, b: Record<string, string>) =>
        String(a[id]).localeCompare(String(b[id])),
      ),
    )
    t.equal(JSON.stringify(got), JSON.stringify(wanted), path)
  }
})

t.test('partial group, row without a date: rejected by PostgreSQL (contract 10)', async (t) => {
  const { connection } = await rows.addCaller(db)
  const add = (row: object) => rows.addPortfolioTransactions(db, connection, row)
  await t.rejects(add({ retention_from: '1' }), /retention_detail_whole/)
  const order = (row: object) => rows.addTransferOrders(db, connection, row)
  await t.rejects(order({ marketer_name: 'M' }), /marketer_whole/)
  await t.rejects(order({ management_company_cif: 'A' }), /management_company_whole/)
  for (const list of rows.listNames) {
    const undated = { operation_date_day: null, original_operation_date_day: '2025-01-01' }
    await t.rejects(rows.lists[list].add(db, connection, undated), /one_date/)
  }
})
