import { randomUUID } from 'node:crypto'
import t from 'tap'
import { parseExact } from '../support/exact-json.ts'
import * as rows from '../support/rows.ts'
import { addAccountTransactions, addCaller, listNames, lists } from '../support/rows.ts'
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

// Sections 2.4 and 2.5: 28 and 17 types, not imported from the schemas.
const types = {
  portfolio: `BUY COMPENSATION COUPON DELISTING DIVIDENDS EXPIRATION
    INHERITANCE_OR_DONATION_TRANSFER_IN INHERITANCE_OR_DONATION_TRANSFER_OUT ISIN_CHANGE_BUY
    ISIN_CHANGE_SELL MERGER_BUY MERGER_SELL OFF_MARKET_BUY OFF_MARKET_SELL PRODUCT_CHANGE_BUY
    PRODUCT_CHANGE_SELL RIGHTS_CONVERSION_BUY RIGHTS_CONVERSION_SELL RIGHTS_EXCLUSION RIGHTS_ISSUE
    SELL SHARE_ISSUE_PREMIUM SPINOFF SPLIT_BUY SPLIT_SELL TRANSFER_IN TRANSFER_OUT UNKNOWN`,
  account: `COUPON DEPOSIT DIVIDENDS DIVIDEND_RETENTION DIVIDEND_RETENTION_REFUND FEES FEES_REFUND
    FOREX_DEPOSIT FOREX_WITHDRAWAL GIFT INTEREST INTEREST_CHARGE RETURN_ON_CAPITAL TAXES TAX_REFUND
    WITHDRAWAL UNKNOWN`,
}

for (const list of listNames) {
  t.test(`${list}, type: every value of the closed list, and no other (contract 14)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const all = types[list].trim().split(/\s+/)
    t.equal(all.length, list === 'portfolio' ? 28 : 17)
    await lists[list].add(db, connection, ...all.map((type) => ({ type }) as object))
    const { items } = (await get(connection[list], { token })).json()
    const got = items.map((item: Record<string, string>) => item.type)
    t.strictSame(got.toSorted(), all.toSorted())
    for (const type of ['', 'buy', 'GUESS', list === 'portfolio' ? 'DEPOSIT' : 'BUY']) {
      const other = { type } as object
      await t.rejects(lists[list].add(db, connection, other), { code: '23514' }, type)
    }
  })
}

t.test('any text: the same characters in the response (contract 10, 13)', async (t) => {
  const texts = [
    '"',
    '\\',
    '\\u0041',
    '</script>',
    '\u2028\u2029\ufeff',
    '\ud83d\ude00 \ud834\udd1e',
    'e\u0301',
    '%s $x {0}',
    Array.from({ length: 31 }, (_, i) => String.fromCharCode(i + 1)).join(''),
    '\u007f\u0080\u009f\uffff\ufffd',
    'ñ'.repeat(10_000),
    '\u0001'.repeat(10_000),
    ' \t ',
    'null',
    '',
  ]
  const { token, connection } = await addCaller(db)
  // Descending hours keep the order above.
  const hour = (i: number) => String(99 - i)
  const values = texts.map((text, i) => ({ description: text, operation_date_hour: hour(i) }))
  await addAccountTransactions(db, connection, ...values)
  const { items } = (await get(connection.account, { token })).json()
  const got = items.map((item: Record<string, string>) => item.description)
  t.strictSame(got, texts)
})

const NINES = '9'.repeat(38)
const ZEROS = '0'.repeat(37)

/** Stored decimals, with the digits of the response where they differ. */
const decimals = [
  '0',
  '1',
  '-1',
  '1.10',
  '1.1000000000',
  '0.00',
  '-0.10',
  '100',
  '1000000000000000000000',
  '123456789012345678.90123456789012345678',
  '0.1',
  '0.30000000000000004',
  '9007199254740993',
  '-9007199254740993.0000000000000001',
  NINES,
  `-${NINES}`,
  `${NINES}.${NINES}`,
  `-${NINES}.${NINES}`,
  `0.${NINES}`,
  `0.${ZEROS}1`,
  `-0.${ZEROS}1`,
  `1${ZEROS}.${ZEROS}0`,
  ['-0', '0'],
  ['-0.00', '0.00'],
  ['+5', '5'],
  ['007', '7'],
  ['1e5', '100000'],
  ['1e37', `1${ZEROS}`],
  ['1e-38', `0.${ZEROS}1`],
  ['.5', '0.5'],
].map((each) => (typeof each === 'string' ? ([each, each] as const) : each))

const decimalColumns = {
  portfolio:
    'exchange_rate titles amount amount_base_currency commission taxes price retention_from retention_to',
  account: 'amount exchange_rate commission taxes',
  orders: 'titles amount',
}

const add = {
  portfolio: rows.addPortfolioTransactions,
  account: rows.addAccountTransactions,
  orders: rows.addTransferOrders,
}

for (const name of ['portfolio', 'account', 'orders'] as const) {
  t.test(`${name}: every decimal field has the stored digits (contract 11)`, async (t) => {
    const { token, connection } = await rows.addCaller(db)
    const fields = decimalColumns[name].split(' ')
    const values = decimals.map(([stored], i) => ({
      ...Object.fromEntries(fields.map((field) => [field, stored])),
      // The rows keep this order in the list.
      ...(name === 'orders'
        ? { completed_at: new Date(Date.UTC(2025, 0, 1, 0, 0, 99 - i)) }
        : { operation_date_hour: String(99 - i) }),
    }))
    await add[name](db, connection, ...(values as object[]))
    const response = parseExact((await get(connection[name], { token })).text)
    const items: object[] = name === 'orders' ? response : response.items
    t.equal(items.length, decimals.length)
    for (const [i, item] of items.entries()) {
      const digits = JSON.stringify(item).match(/(?<="digits":")[^"]+/g) ?? []
      t.strictSame(
        digits,
        fields.map(() => decimals[i]?.[1]),
      )
    }
  })
}

t.test('decimals: JSON numbers without exponent (contract 11)', async (t) => {
  const { token, connection } = await rows.addCaller(db)
  const values = decimals.map(([stored]) => ({ amount: stored }))
  await rows.addAccountTransactions(db, connection, ...(values as object[]))
  const { text } = await get(connection.account, { token })
  const written = text.match(/(?<="amount":)[^,]+/g) ?? []
  t.equal(written.length, decimals.length)
  for (const number of written) t.match(number, /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/)
})

t.test('values that are not exact decimals: the database rejects them (contract 11)', async (t) => {
  const { connection } = await rows.addCaller(db)
  const rejected = [
    'NaN',
    'Infinity',
    '-Infinity',
    '1e38',
    '-1e38',
    `0.${ZEROS}00`,
    '1e-39',
    '1e400',
  ]
  for (const amount of rejected) {
    await t.rejects(
      rows.addAccountTransactions(db, connection, { amount }),
      { code: '23514' },
      amount,
    )
  }
  for (const amount of ['', 'x', '1,5', '1 000', '0x']) {
    await t.rejects(
      rows.addAccountTransactions(db, connection, { amount }),
      { code: '22P02' },
      amount,
    )
  }
})
