import { gzipSync } from 'node:zlib'
import t from 'tap'
import { accountLine, orderLine, portfolioLine, prepareImport, uuid } from '../support/importing.ts'
import { operatorHere } from '../support/operator-process.ts'
import { withLengths } from '../support/with-lengths.ts'

const { problems, run, newConnection, db, url } = await prepareImport(t)
const csv = { format: 'csv' } as const

/** Header and cells of the required fields of a portfolio transaction. */
const names = 'transactionId,portfolioId,type,operationDateDay'
const cells = (id: number) => `${uuid(id)},${uuid(0)},BUY,2024-02-29`

t.test('CSV: the same rows as newline-delimited JSON', async (t) => {
  const texts = [
    'a "quoted" text',
    'one\r\ntwo\n\nthree',
    'a,b',
    ' ',
    '',
    'null',
    'NULL',
    '"',
    'é😀',
    '=1+1',
  ]
  const header = `${names},description,amount,price,retentionFrom,retentionTo`
  const rows = texts.map((text, id) => {
    const retention =
      id % 2 === 0 ? '' : `,"retentionDetail":{"retentionFrom":${id}.10,"retentionTo":-0.0}`
    const json = portfolioLine(
      id,
      `"description":${JSON.stringify(text)},"amount":${id}.50,"price":-0.5${retention}`,
    )
    const last = id % 2 === 0 ? ',' : `${id}.10,-0.0`
    const quoted = `"${text.replaceAll('"', '""')}"`
    return { json, csv: `${cells(id)},${quoted},${id}.50,-0.5,${last}` }
  })
  const json = rows.map((row) => row.json).join('\n')
  for (const end of ['\n', '\r\n']) {
    const text = [`\ufeff${header}`, ...rows.map((row) => row.csv), ''].join(end)
    for (const chunkBytes of [1, 5, 64 * 1024]) {
      const connection = await newConnection()
      await run('portfolio-transactions', connection, json)
      t.match(
        await run('portfolio-transactions', connection, text, { ...csv, chunkBytes }),
        { read: 10, inserted: 0, updated: 0, unchanged: 10 },
        `${JSON.stringify(end)}, ${chunkBytes} bytes`,
      )
    }
    const compressed = await newConnection()
    const counts = await run('portfolio-transactions', compressed, gzipSync(text), csv)
    t.match(counts, { inserted: 10 })
  }
})

t.test('CSV, empty field: null, quoted or not; a quoted text is an empty text', async (t) => {
  const connection = await newConnection()
  const header = `${names},description,currency,amount,valueDateDay,retentionFrom,retentionTo`
  const text = `${header}\n${cells(1)},,"","","",,""\n`
  await run('portfolio-transactions', connection, text, csv)
  const row = await db
    .selectFrom('portfolio_transaction')
    .selectAll()
    .where('connection_id', '=', connection.id)
    .executeTakeFirstOrThrow()
  t.match(row, { description: null, currency: '', amount: null, value_date_day: null })
  t.match(row, { retention_from: null, retention_to: null })
})

t.test('CSV of account transactions and transfer orders: imported', async (t) => {
  const connection = await newConnection()
  const account = 'movementId,accountId,type,amount,operationDateDay'
  const values = `${uuid(1)},${uuid(0)},DEPOSIT,1,2024-02-29`
  const counts = await run('account-transactions', connection, `${account}\n${values}`, csv)
  t.match(counts, { inserted: 1 })
  const again = await run('account-transactions', connection, accountLine(1))
  t.match(again, { unchanged: 1 })

  const order =
    'id,name,total,marketer.name,marketer.cif,managementCompany.name,managementCompany.cif'
  const orders = `${order}\n${uuid(1)},N,TRUE,M,C,,\n${uuid(2)},,false,,,,`
  t.match(await run('transfer-orders', connection, orders, csv), { inserted: 2 })
  const json = [
    orderLine(1, '"name":"N","total":true,"marketer":{"name":"M","cif":"C"}'),
    orderLine(2, '"total":false'),
  ]
  t.match(await run('transfer-orders', connection, json.join('\n')), { unchanged: 2 })
})

t.test('CSV with invalid values: each with its line and field', async (t) => {
  const header = `${names},description,amount,retentionFrom,retentionTo`
  const lines = [
    header,
    `${cells(1)},"two\r\nlines",1,,`,
    '',
    `${cells(2)},"two\r\nlines","1,5",,`,
    `${cells(3)},,1.5,2,`,
    `${cells(4)},,01,,`,
    `${cells(5).replace('BUY', 'buy')},,NaN,,`,
    `${cells(1)},,,,`,
    `${cells(6)},1E5,1.2E+3,,`,
    `${cells(7)},,,1,1e-7`,
    `${cells(8)},,\u00001e5,,`,
  ]
  const text = lines.join('\r\n')
  const noExponent = (cell: string) => `a number such as 1234.50 is expected, not "${cell}"`
  t.same(await problems('portfolio-transactions', text, csv), [
    '5: amount: a number such as 1234.50 is expected, not "1,5"',
    '7: retentionDetail.retentionTo: null is not allowed here',
    '8: amount: a number such as 1234.50 is expected, not "01"',
    '9: type: "buy" is not a value of this field; the closest is BUY',
    '9: amount: a number such as 1234.50 is expected, not "NaN"',
    '10: transactionId: duplicate of the row on line 2 of rows.ndjson',
    `11: amount: ${noExponent('1.2E+3')}`,
    `12: retentionDetail.retentionTo: ${noExponent('1e-7')}`,
    `13: amount: ${noExponent('\\u00001e5')}`,
  ])
  const missing = `transactionId,portfolioId,operationDateDay\n${uuid(1)},${uuid(0)},2024-02-29`
  t.same(await problems('portfolio-transactions', missing, csv), ['2: type: the field is missing'])
})

t.test('CSV with a wrong header: the first wrong name', async (t) => {
  const wrong = async (header: string) =>
    await problems('portfolio-transactions', `${header}\n${cells(1)}\n`, csv)
  t.same(await wrong(`ammount,${names},type,foo`), [
    '1: ammount: there is no such field; the closest is amount',
  ])
  t.same(await wrong(`${names},type,foo`), ['1: type: the field appears twice'])
  t.same(await wrong(`${names},,""`), ['1: field 5: there is no such field'])
  t.same(await wrong(`${names},retentionFrom,retentionDetail.retentionFrom,retentionTo`), [
    '1: retentionDetail.retentionFrom: the field appears twice',
  ])
  t.match(
    await problems('transfer-orders', 'id,cif\n', csv),
    withLengths([/^1: cif: there is no such field/]),
  )
  const many = Array.from({ length: 140_000 }, (_, index) => `c${index}`)
  const title = `Statement of 2026\n\n${names}`
  const one = portfolioLine(1)
  for (const header of [
    `${names},${many}`,
    names.replaceAll(',', ';'),
    title,
    `${names}\r${cells(1)}`,
    one,
  ])
    t.match(
      await wrong(header),
      withLengths([/^1: .*(there is no such field|not (valid )?CSV|CSV needs commas)/]),
    )
})

t.test('Text that is not CSV: rejected with the line where the record starts', async (t) => {
  const start = `${names},description\n${cells(1)},"a\r\nb"\n\n`
  const cases: [string, RegExp][] = [
    [`${cells(2)},"a\nb`, /^5: not valid CSV: Quote Not Closed/],
    [`${cells(2)},a"b\n`, /^5: not valid CSV: Invalid Opening Quote/],
    [`${cells(2)},"a"b\n`, /^5: not valid CSV: Invalid Closing Quote/],
    [`${cells(2)}\n`, /^5: not valid CSV: Invalid Record Length: expect 5, got 4$/],
    [`${cells(2)},a,b\n`, /^5: not valid CSV: Invalid Record Length: expect 5, got 6$/],
    [`${cells(2)},"${'x'.repeat(2 ** 21)}"`, /^5: not valid CSV: Max Record Size/],
  ]
  for (const [rest, problem] of cases)
    t.match(await problems('portfolio-transactions', start + rest, csv), withLengths([problem]))
  const latin1 = Buffer.from(`${names},description\n${cells(1)},España\n`, 'latin1')
  await t.rejects(run('portfolio-transactions', await newConnection(), latin1, csv), {
    name: 'OperatorError',
    message: 'rows.ndjson is not UTF-8.',
  })
})

t.test('Text in the other format: rejected with its line', async (t) => {
  for (const text of [names, `\ufeff\n${names}\n${cells(1)}\n`, gzipSync(names)])
    t.match(
      (await problems('portfolio-transactions', text))[0],
      /^1: not JSON: if the file is CSV, add --format csv$|^2: not valid/,
    )
  t.same(await problems('portfolio-transactions', names.replaceAll(',', ';'), csv), [
    '1: the header has one field: CSV needs commas',
  ])
  for (const text of [`${portfolioLine(1)}\n`, `[${portfolioLine(1)}]\n`])
    t.same(await problems('portfolio-transactions', text, csv), [
      '1: not CSV: if the file is NDJSON, leave out --format csv',
    ])
  t.match(await problems('portfolio-transactions', `sep=,\r\n${names}`, csv), withLengths([/^1: /]))
})

t.test(
  'CSV with blank rows of a spreadsheet: skipped, and later lines keep their number',
  async (t) => {
    const text = `${names}\r\n,,,\r\n${cells(1)}\r\n\r\n"","","",""\r\n`
    t.match(await run('portfolio-transactions', await newConnection(), text, csv), { read: 1 })
    t.same(await problems('portfolio-transactions', `${text}x,,,\r\n`, csv), [
      '6: transactionId: a UUID is expected, not "x"',
      '6: portfolioId: null is not allowed here',
      '6: type: null is not allowed here',
      '6: operationDateDay or valueDateDay must have a value',
    ])
  },
)

t.test('CSV without rows: imports none', async (t) => {
  for (const text of ['', '\n', names, `${names}\n,,,\n`, `\ufeff${names}\r\n\r\n`]) {
    const counts = await run('portfolio-transactions', await newConnection(), text, csv)
    t.match(counts, { read: 0 }, JSON.stringify(text))
  }
})

t.test('many records: all are imported, and a wrong one has its line', async (t) => {
  const lines = Array.from({ length: 5_000 }, (_, id) => `${cells(id)},"${'x'.repeat(100)}\n"`)
  const text = (more: string) => [`${names},description`, ...lines, more].join('\n')
  const counts = await run('portfolio-transactions', await newConnection(), text(''), csv)
  t.match(counts, { inserted: 5_000 })
  t.match(
    await problems('portfolio-transactions', text(`x${cells(1)},`), csv),
    withLengths([/^10002: transactionId: a UUID is expected/]),
  )
})

t.test('--format: csv, or an error', async (t) => {
  const env = { DATABASE_URL: url }
  const call = ['import', 'portfolio-transactions', '--connection', '1', '--format', 'xml', 'none']
  const { code, stderr } = await operatorHere(call, env)
  t.equal(code, 2)
  t.match(stderr, /Allowed choices are ndjson, csv\./)
})
