import { readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import t from 'tap'
import { lists } from '../../src/schemas/lists.ts'
import { accountLine, orderLine, portfolioLine, prepareImport, uuid } from '../support/importing.ts'
import { addAccountTransactions, addPortfolioTransactions } from '../support/rows.ts'
import { withLengths } from '../support/with-lengths.ts'

const { db, problems, run, newConnection, rowCounts } = await prepareImport(t)

/** Imports lines. Returns the actual and the expected problems. */
async function report(type: Parameters<typeof problems>[0], cases: [string, string][]) {
  const actual = await problems(type, cases.map(([line]) => `${line}\n`).join(''))
  return [actual, cases.map(([, reason], index) => `${index + 1}: ${reason}`)] as const
}

t.test('Invalid number: rejected with the limit that it exceeds', async (t) => {
  const number = 'a number such as 1234.50 is expected'
  const [actual, expected] = await report('portfolio-transactions', [
    [portfolioLine(1, '"amount":"1e5"'), 'amount: a number such as 1234.50 is expected, not "1e5"'],
    [portfolioLine(2, '"amount":true'), `amount: ${number}, not true`],
    [portfolioLine(3, '"amount":[1]'), `amount: ${number}, not an array`],
    [portfolioLine(4, '"amount":{}'), `amount: ${number}, not an object`],
    [
      portfolioLine(5, '"amount":1e400'),
      'amount: 1e400 has more than 38 digits before the decimal point',
    ],
    [
      portfolioLine(6, '"titles":1e38'),
      'titles: 1e38 has more than 38 digits before the decimal point',
    ],
    [
      portfolioLine(7, '"price":1e-39'),
      'price: 1e-39 has more than 38 digits after the decimal point',
    ],
    [
      portfolioLine(8, `"price":0.${'0'.repeat(39)}`),
      `price: 0.${'0'.repeat(38)}… has more than 38 digits after the decimal point`,
    ],
    [
      portfolioLine(9, `"price":${'9'.repeat(39)}`),
      `price: ${'9'.repeat(39)} has more than 38 digits before the decimal point`,
    ],
  ])
  t.same(actual, expected)
})

const HOUR = 'a time as HH:mm or HH:mm:ss is expected, such as 09:05 or 14:58:40, not'

t.test('Hour that sorts wrongly: rejected in a new row, with its line and field', async (t) => {
  const right = ['09:05', '23:59:59', '00:00:00.123456789', '10:01:02.811']
  const odd = ['9:05', '2:58:40 PM', '24:00', '09:60', '09:05:60', '', '09:05 ', 'Z', '09:05\\n']
  const lines = [...right, ...odd].map((text, index) =>
    portfolioLine(index, `"operationDateHour":"${text}"`),
  )
  t.same(
    await problems('portfolio-transactions', lines.join('\n')),
    odd.map((text, index) => `${right.length + index + 1}: operationDateHour: ${HOUR} "${text}"`),
  )
  t.same(await problems('portfolio-transactions', lines.join('\n'), { dryRun: true }), [
    ...(await problems('portfolio-transactions', lines.join('\n'))),
  ])

  const connection = await newConnection()
  const { inserted } = await run(
    'portfolio-transactions',
    connection,
    lines.slice(0, right.length).join('\n'),
  )
  t.equal(inserted, right.length)
})

t.test('Hour that sorts wrongly: each hour of each list', async (t) => {
  const lineOf = { 'portfolio-transactions': portfolioLine, 'account-transactions': accountLine }
  let found = 0
  for (const { name, item } of lists) {
    if (name === 'transfer-orders') continue
    for (const field of Object.keys(item.properties).filter((name) => name.endsWith('Hour'))) {
      found += 1
      const line = lineOf[name](1, `"${field}":"9:05"`)
      t.same(await problems(name, line), [`1: ${field}: ${HOUR} "9:05"`])
    }
  }
  t.equal(found, 8)
})

t.test(
  'Hour that sorts wrongly: a stored row passes unchanged, and is rejected changed',
  async (t) => {
    const type = 'account-transactions'
    const stored = (members: string) => accountLine(1, `"operationDateHour":"9:05"${members}`)
    for (const replace of [undefined, { yes: true }]) {
      const connection = await newConnection()
      await addAccountTransactions(db, connection, {
        movement_id: uuid(1),
        account_id: uuid(0),
        operation_date_day: '2024-02-29',
        operation_date_hour: '9:05',
      })
      const options = replace ? { replace } : {}
      t.match(await run(type, connection, stored(''), options), { unchanged: 1 })
      await t.rejects(
        run(type, connection, stored(',"currency":"EUR"'), options),
        withLengths({
          name: 'ImportRejected',
          total: 1,
          problems: [{ line: 1, field: 'operationDateHour', reason: `${HOUR} "9:05"` }],
        }),
      )
      // The digits of an amount are a change, too.
      const digits = stored('').replace('"amount":1,', '"amount":1.0,')
      await t.rejects(run(type, connection, digits, options), { name: 'ImportRejected' })
      // Another row of the file is not the stored one.
      const twice = `${stored('')}\n${stored('').replace(uuid(1), uuid(2))}`
      await t.rejects(
        run(type, connection, twice, options),
        withLengths({
          name: 'ImportRejected',
          problems: [{ line: 2 }],
          total: 1,
        }),
      )
      const right = accountLine(1, '"operationDateHour":"09:05"')
      t.match(await run(type, connection, right, options), { updated: 1 })
    }
  },
)

t.test('Hour that sorts wrongly: the first 20 are named, and all are counted', async (t) => {
  const rows = Array.from({ length: 30 }, (_, index) =>
    portfolioLine(index, '"operationDateHour":"9:05","valueDateHour":"9:05"'),
  )
  const connection = await newConnection()
  await addPortfolioTransactions(db, connection, { transaction_id: uuid(99) })
  await t.rejects(run('portfolio-transactions', connection, rows.join('\n')), {
    name: 'ImportRejected',
    total: 60,
    problems: { length: 20, 19: { line: 10, field: 'valueDateHour' } },
  })
})

t.test('Hour that sorts wrongly: docs/upgrade.md finds the stored ones', async (t) => {
  const connection = await newConnection()
  const columns = [
    'operation_date_hour',
    'original_operation_date_hour',
    'value_date_hour',
    'original_value_date_hour',
  ]
  const texts = ['9:05', '2:58 PM', '', '24:00']
  const rows = columns.map((column, index) => ({ [column]: texts[index], type: 'UNKNOWN' }))
  const right = { operation_date_hour: '09:05', value_date_hour: '23:59:59.5' }
  const portfolio = await addPortfolioTransactions(db, connection, ...(rows as object[]), right)
  const account = await addAccountTransactions(db, connection, ...(rows as object[]), right)
  const page = await readFile('docs/upgrade.md', 'utf8')
  const [, query = ''] = /## Hours that sort wrongly.*?```sql\n(.*?)```/s.exec(page) ?? []
  const { rows: found } = await sql.raw<{ id: string; hours: string }>(query).execute(db)
  const expected = [portfolio, account].flatMap((ids) =>
    columns.map((_, index) => `${ids[index]} ${texts[index]} `),
  )
  t.same(found.map(({ id, hours }) => `${id} ${hours}`).sort(), expected.sort())
})

t.test('Only date is wrong: one problem', async (t) => {
  const row = JSON.parse(portfolioLine(1))
  const wrong = JSON.stringify({ ...row, operationDateDay: '2025-02-30', valueDateDay: null })
  t.same(await problems('portfolio-transactions', wrong), [
    '1: operationDateDay: an existing day is expected, as YYYY-MM-DD, not "2025-02-30"',
  ])
})

t.test('Invalid decimal as a string: rejected', async (t) => {
  const others = ['', ' 1', '1 ', '1\\n', 'NaN', '+1', '-', '01', '.5', '1.', '1,5', '0x1', '١']
  const long = '9'.repeat(39)
  const [actual, expected] = await report('portfolio-transactions', [
    ...others.map((text, index): [string, string] => [
      portfolioLine(index, `"amount":"${text}"`),
      `amount: a number such as 1234.50 is expected, not "${text}"`,
    ]),
    [
      portfolioLine(20, `"amount":"-${long}"`),
      `amount: -${long} has more than 38 digits before the decimal point`,
    ],
    [
      portfolioLine(
        21,
        `"retentionDetail":{"retentionFrom":"0.${'0'.repeat(39)}","retentionTo":"1"}`,
      ),
      `retentionDetail.retentionFrom: 0.${'0'.repeat(38)}… has more than 38 digits after the decimal point`,
    ],
  ])
  t.same(actual, expected)
})

t.test('Invisible character in a rejected value or name: escaped', async (t) => {
  const [actual, expected] = await report('portfolio-transactions', [
    [
      portfolioLine(1, '"amount":"1\u00a0234.50"'),
      'amount: a number such as 1234.50 is expected, not "1\\u00a0234.50"',
    ],
    [
      portfolioLine(2, '"amount":"1\u202f234.50"'),
      'amount: a number such as 1234.50 is expected, not "1\\u202f234.50"',
    ],
    [
      portfolioLine(3, '"amount":" 1\u2009\u200b\u0085"'),
      'amount: a number such as 1234.50 is expected, not " 1\\u2009\\u200b\\u0085"',
    ],
    [
      portfolioLine(3, '"amount":"\\u00001\\t2"'),
      'amount: a number such as 1234.50 is expected, not "\\u00001\\t2"',
    ],
    [
      portfolioLine(4).replace('"BUY"', '"\ufeffBUY"'),
      'type: "\\ufeffBUY" is not a value of this field; the closest is BUY',
    ],
    [
      portfolioLine(5, '"amount\u00a0":1'),
      '"amount\\u00a0": there is no such field; the closest is amount',
    ],
  ])
  t.same(actual, expected)
  const names = 'transactionId,portfolioId,type,operationDateDay'
  const csv = { format: 'csv' } as const
  const cells = `\ufeff${uuid(1)},${uuid(0)},BUY,2024-02-29`
  t.same(await problems('portfolio-transactions', `${names}\n${cells}`, csv), [
    `2: transactionId: a UUID is expected, not "\\ufeff${uuid(1)}"`,
  ])
  t.same(await problems('portfolio-transactions', `${names},\ufeffprice\n`, csv), [
    '1: \\ufeffprice: there is no such field; the closest is price',
  ])
})

t.test('Text that begins with NUL before a number: rejected, also in CSV', async (t) => {
  const [actual, expected] = await report('portfolio-transactions', [
    [
      portfolioLine(1, '"amount":"\\u00001234.50"'),
      'amount: a number such as 1234.50 is expected, not "\\u00001234.50"',
    ],
    [
      portfolioLine(2, '"description":"\\u00001"'),
      'description: a text cannot contain NUL (\\u0000)',
    ],
  ])
  t.same(actual, expected)
  const csv = `transactionId,portfolioId,type,operationDateDay,amount
${uuid(1)},${uuid(0)},BUY,2024-02-29,\x001234.50`
  t.same(await problems('portfolio-transactions', csv, { format: 'csv' }), [
    '2: amount: a number such as 1234.50 is expected, not "\\u00001234.50"',
  ])
})

t.test('Name that an object has twice: rejected with its path', async (t) => {
  const twice = 'the field appears twice'
  const [actual, expected] = await report('portfolio-transactions', [
    [portfolioLine(1, '"amount":1,"amount":2'), `amount: ${twice}`],
    [portfolioLine(2, '"amount":1,"price":2,"\\u0061mount":1'), `amount: ${twice}`],
    [portfolioLine(3, '"amount" : 1, "amount"\t:2'), `amount: ${twice}`],
    [
      portfolioLine(
        4,
        '"description":"\\"amount\\":\\\\","retentionDetail":{"retentionTo":"1","retentionTo":"2"}',
      ),
      `retentionDetail.retentionTo: ${twice}`,
    ],
    [portfolioLine(5, '"type":"BUY"'), `type: ${twice}`],
    [`[{"a":[{"b":1},{"b":1,"b":1}]}]`, `1.a.2.b: ${twice}`],
  ])
  t.same(actual, expected)
})

t.test('Texts that look like names: no name appears twice', async (t) => {
  const connection = await newConnection()
  const lines = [
    portfolioLine(1, '"description":": \\"amount\\":1, \\"amount\\":2 \\\\"'),
    portfolioLine(2, '"description":":","amount" : 1'),
    portfolioLine(
      3,
      '"retentionDetail":{"retentionFrom":1,"retentionTo":2},"description":":\\\\\\":"',
    ),
  ]
  const { inserted } = await run('portfolio-transactions', connection, lines.join('\n'))
  t.equal(inserted, lines.length)
})

t.test('Quotes without an end: rejected as fast as they are read', async (t) => {
  const line = `{"\\u0061":"${'\\"'.repeat(500_000)}`
  t.match(
    await problems('portfolio-transactions', line),
    withLengths([/^1: not valid JSON: Unterminated/]),
  )
})

t.test('JSON that is nested too deeply: rejected with a sentence', async (t) => {
  const brackets = 100_000
  const [actual, expected] = await report('portfolio-transactions', [
    [
      `{"a":${'['.repeat(brackets)}"\\u0061"${']'.repeat(brackets)}}`,
      'its objects and arrays are nested too deeply',
    ],
    [
      `${'['.repeat(brackets)}${']'.repeat(brackets)}`,
      'a JSON object is expected: one portfolio transaction',
    ],
  ])
  t.same(actual, expected)
})

t.test('Invalid date: rejected if it does not exist or has another notation', async (t) => {
  const days = ['2025-02-30', '0000-01-01', '10000-01-01', '2025-13-01', '2025-1-1', '2025-00-10']
  const others = [
    '',
    '2025-01-01T00:00:00Z',
    '1900-02-29',
    '２025-01-01',
    '2025-06-31',
    '2025/06/01',
  ]
  const [actual, expected] = await report(
    'portfolio-transactions',
    [...days, ...others].map((day, index) => [
      portfolioLine(index, `"valueDateDay":"${day}"`),
      `valueDateDay: an existing day is expected, as YYYY-MM-DD, not "${day}"`,
    ]),
  )
  t.same(actual, expected)
})

t.test('Invalid UUID or value of a list: rejected', async (t) => {
  const id = uuid(1)
  const rest = `"portfolioId":"${id}","operationDateDay":"2024-01-01"`
  const [actual, expected] = await report('portfolio-transactions', [
    [
      `{"transactionId":"${id.slice(1)}","type":"BUY",${rest}}`,
      `transactionId: a UUID is expected, not "${id.slice(1)}"`,
    ],
    [
      `{"transactionId":"{${id.slice(2)}","type":"BUY",${rest}}`,
      `transactionId: a UUID is expected, not "{${id.slice(2)}"`,
    ],
    [`{"transactionId":7,"type":"BUY",${rest}}`, 'transactionId: a UUID is expected, not 7'],
    [
      `{"transactionId":"${id}","type":"buy",${rest}}`,
      'type: "buy" is not a value of this field; the closest is BUY',
    ],
    [
      `{"transactionId":"${id}","type":"BYU",${rest}}`,
      'type: "BYU" is not a value of this field; the closest is BUY',
    ],
    [
      `{"transactionId":"${id}","type":"DIVIDEND",${rest}}`,
      'type: "DIVIDEND" is not a value of this field; the closest is DIVIDENDS',
    ],
    [`{"transactionId":"${id}","type":1,${rest}}`, 'type: a text is expected, not 1'],
  ])
  t.same(actual, expected)
})

t.test('Invalid text: NUL, half of a surrogate pair, too long, or a number', async (t) => {
  const [actual, expected] = await report('portfolio-transactions', [
    [
      portfolioLine(1, '"description":"a\\u0000b"'),
      'description: a text cannot contain NUL (\\u0000)',
    ],
    [
      portfolioLine(2, '"description":"\\ud83d"'),
      'description: the text contains half of a surrogate pair',
    ],
    [
      portfolioLine(3, `"description":"${'x'.repeat(1_000_000)}"`),
      'description: the text has more than 10000 characters',
    ],
    [
      portfolioLine(3, `"am\\u006funt":1,"description":"${'\\"'.repeat(200_000)}"`),
      'description: the text has more than 10000 characters',
    ],
    [
      portfolioLine(4, `"currency":"${'€'.repeat(256)}"`),
      'currency: the text has more than 255 characters',
    ],
    [
      portfolioLine(5, `"currency":"${'\\u20ac'.repeat(256)}"`),
      'currency: the text has more than 255 characters',
    ],
    [portfolioLine(6, '"currency":978'), 'currency: a text is expected, not 978'],
  ])
  t.same(actual, expected)
})

t.test('Text at the length limit: stored; the limit counts characters', async (t) => {
  const connection = await newConnection()
  const text = `"description":"${'😀'.repeat(10_000)}","currency":"${'\\ud83d\\ude00'.repeat(255)}"`
  t.match(await run('portfolio-transactions', connection, portfolioLine(1, text)), { inserted: 1 })
})

t.test('Escaped text of three bytes a character: stored whole', async (t) => {
  const connection = await newConnection()
  const description = `"description":"${'\\u20ac'.repeat(10_000)}"`
  await run('portfolio-transactions', connection, portfolioLine(1, description))
  const stored = await db.selectFrom('portfolio_transaction').select('description').execute()
  t.ok(stored.some((row) => row.description === '€'.repeat(10_000)))
})

t.test('Invalid field: unknown, repeated, missing or null', async (t) => {
  const [actual, expected] = await report('portfolio-transactions', [
    [portfolioLine(1, '"ammount":1'), 'ammount: there is no such field; the closest is amount'],
    [portfolioLine(2, '"movementId":1'), 'movementId: there is no such field'],
    [
      portfolioLine(3, '"am\\u006funt":1e99'),
      'amount: 1e99 has more than 38 digits before the decimal point',
    ],
    [portfolioLine(5).replace('"type":"BUY",', ''), 'type: the field is missing'],
    [portfolioLine(6).replace('"BUY"', 'null'), 'type: null is not allowed here'],
    [
      portfolioLine(7).replace('"2024-02-29"', 'null'),
      'operationDateDay or valueDateDay must have a value',
    ],
    [portfolioLine(8, '"\\u001b[2J":1'), '"\\u001b[2J": there is no such field'],
    [portfolioLine(9, '"foo":1'), 'foo: there is no such field'],
    [
      portfolioLine(10, '"investmentId":1'),
      'investmentId: there is no such field; the closest is investment',
    ],
    [
      portfolioLine(11).replace('BUY', 'PURCHASED'),
      'type: "PURCHASED" is not a value of this field',
    ],
  ])
  t.same(actual, expected)
})

t.test('Invalid row: every problem is reported', async (t) => {
  const line = accountLine(1, '"currency":1,"valueDateDay":"x"').replace('"amount":1,', '')
  t.same(await problems('account-transactions', line), [
    '1: amount: the field is missing',
    '1: currency: a text is expected, not 1',
    '1: valueDateDay: an existing day is expected, as YYYY-MM-DD, not "x"',
  ])
})

t.test('Nested object: has all its members, or is null', async (t) => {
  const [actual, expected] = await report('portfolio-transactions', [
    [
      portfolioLine(1, '"retentionDetail":{"retentionFrom":1}'),
      'retentionDetail.retentionTo: the field is missing',
    ],
    [
      portfolioLine(2, '"retentionDetail":{"retentionFrom":1,"retentionTo":null}'),
      'retentionDetail.retentionTo: null is not allowed here',
    ],
    [
      portfolioLine(3, '"retentionDetail":{"retentionFrom":1,"retentionTo":2,"retention":3}'),
      'retentionDetail.retention: there is no such field; the closest is retentionTo',
    ],
    [
      portfolioLine(4, '"retentionDetail":3'),
      'retentionDetail: an object with retentionFrom and retentionTo is expected, not 3',
    ],
  ])
  t.same(actual, expected)
  t.same(await problems('transfer-orders', orderLine(1, '"marketer":{"name":"M"}')), [
    '1: marketer.cif: the field is missing',
  ])
})

t.test('completedAt in the future: rejected, except for the difference of clocks', async (t) => {
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
  const later = [inMs(120_000), inMs(120_000).replace('Z', '-00:00'), '9999-12-31t23:59:59z']
  const [actual, expected] = await report(
    'transfer-orders',
    later.map((text, index) => [
      orderLine(index, `"completedAt":"${text}"`),
      `completedAt: "${text}" is in the future: write null until it has passed`,
    ]),
  )
  t.same(actual, expected)
  const past = [inMs(30_000), '0001-01-01t00:00:00.123456789z', inMs(-1).replace('Z', '+00:00')]
  const lines = past.map((text, index) => orderLine(index, `"completedAt":"${text}"`)).join('\n')
  t.match(await run('transfer-orders', await newConnection(), lines), { inserted: 3 })
})

t.test('Invalid completedAt: not a time with its offset', async (t) => {
  const texts = ['2024-01-01', '2024-01-01T00:00:00', '2024-02-30T00:00:00Z', 'infinity', 'now']
  const more = ['2024-01-01T24:00:00Z', '2024-01-01T00:00:00+16:00', '2024-01-01T00:60:00Z']
  const [actual, expected] = await report(
    'transfer-orders',
    [...[...texts, ...more].map((text) => `"${text}"`), '1735689600', 'true'].map((json, index) => [
      orderLine(index, `"completedAt":${json}`),
      `completedAt: a time with its offset is expected, as 2025-03-14T09:30:00Z, not ${json}`,
    ]),
  )
  t.same(actual, expected)
  // PostgreSQL reads neither of them.
  const others = [`2024-01-01T00:00:00.${'1'.repeat(130)}Z`, '0001-01-01T00:00:00+01:00']
  const lines = others.map((text, index) => orderLine(index, `"completedAt":"${text}"`))
  const found = await problems('transfer-orders', lines.join('\n'))
  t.match(
    found,
    withLengths([/^1: completedAt: a time with its offset/, /^2: completedAt: a time with/]),
  )
})

t.test(
  'Invalid rows: nothing is imported; the first 20 problems are listed, all are counted',
  async (t) => {
    const connection = await newConnection()
    const valid = Array.from({ length: 30 }, (_, index) => portfolioLine(index))
    const invalid = valid.map((line) => line.replace('BUY', 'BOUGHT'))
    const before = await rowCounts(connection)
    const rejected = run('portfolio-transactions', connection, [...invalid, ...valid].join('\n'))
    await t.rejects(rejected, { message: /^30 problems .*nothing was imported/ })
    const error = await rejected.catch((reason) => reason)
    t.equal(error.problems.length, 20)
    t.match(
      error.message.split('\n').slice(1, 2),
      withLengths(['rows.ndjson:1: type: "BOUGHT" is not a value of this field']),
    )
    t.match(error.message, /… and 10 more problems$/)
    t.same(await rowCounts(connection), before)
  },
)

t.test(
  'More problems than are shown: lines of each kind count as many as when shown',
  async (t) => {
    const connection = await newConnection()
    const lines = [
      ...[
        'x',
        '[]',
        '5',
        'null',
        '"{"',
        ' {}',
        '{',
        '{"amount":01}',
        '\t{"a":1,"b":1e2}',
        '{"x":1}x',
      ],
      portfolioLine(1, '"amount":1e5'),
      portfolioLine(2, '"amount":1.10,"unknown":{"amount":5}'),
      portfolioLine(3, '"\\u0061mount":2.50'),
      portfolioLine(4, `"amount":${'9'.repeat(39)}`),
    ]
    const totalOf = (text: string[]) =>
      run('portfolio-transactions', connection, text.join('\n')).then(
        () => 0,
        ({ total }) => total,
      )
    const before = Array.from({ length: 20 }, (_, index) => portfolioLine(index + 5, '"taxes":""'))
    const alone = lines.map((line) => totalOf([...before.slice(0, 1), line]))
    const shown = (await Promise.all(alone)).map((total) => total - 1)
    t.same(shown, [1, 1, 1, 1, 1, 4, 1, 1, 6, 1, 0, 1, 0, 1])
    const sum = shown.reduce((total, count) => total + count)
    t.equal(await totalOf([...before, ...lines]), before.length + sum)
  },
)
