import t from 'tap'
import { addAccountTransactions, addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)

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
