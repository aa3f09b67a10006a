import t from 'tap'
import { parseExact } from '../support/exact-json.ts'
import * as rows from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)

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

const columns = {
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
    const fields = columns[name].split(' ')
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
