import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { openInput } from '../../src/operator/inputs.ts'
import { plainBytes } from '../../src/operator/loading/source.ts'
import { accountLine, portfolioLine, prepareImport } from '../support/importing.ts'
import { withLengths } from '../support/with-lengths.ts'

const { problems, run, newConnection, db } = await prepareImport(t)
const type = 'portfolio-transactions'
const [one, two, three] = [portfolioLine(1), portfolioLine(2), portfolioLine(3)]

/** Imports a text into a new connection. Returns the number of rows. */
async function read(text: string | Buffer, chunkBytes?: number): Promise<number> {
  const more = chunkBytes === undefined ? {} : { chunkBytes }
  return (await run(type, await newConnection(), text, more)).inserted
}

t.test('Byte order mark, CRLF, blank lines, no last line break: accepted', async (t) => {
  t.equal(await read(`\ufeff${one}\r\n\r\n \t \r\n  ${two}  \r\n\n${three}`), 3)
  t.equal(await read(`\ufeff${one}`), 1)
})

t.test('File without rows: imports none', async (t) => {
  for (const text of ['', '\n', '\ufeff', '\r\n \n\t', '\ufeff\n']) {
    const counts = await run(type, await newConnection(), text)
    t.same(
      counts,
      { read: 0, inserted: 0, updated: 0, unchanged: 0, removed: 0 },
      JSON.stringify(text),
    )
  }
})

t.test('Chunks of any size: the same rows', async (t) => {
  const text = `\ufeff${portfolioLine(1, '"description":"añ😀\\"\\\\"')}\r\n\n${two}\n${three}`
  for (const bytes of [1, 2, 3, 7, 64, 200]) t.equal(await read(text, bytes), 3, `${bytes} bytes`)
})

t.test('Invalid JSON: reported with its position', async (t) => {
  const cases: [string, string][] = [
    ['{"amount":01}', 'Unexpected number in JSON at position 11'],
    ['{"amount":1.}', 'Unterminated fractional number in JSON at position 12'],
    ['{"amount":-}', 'No number after minus sign in JSON at position 11'],
    ['{"amount":NaN}', 'Unexpected token \'N\', "{"amount":NaN}" is not valid JSON'],
    ['{"amount":1,}', 'Expected double-quoted property name in JSON at position 12'],
    ["{'amount':1}", "Expected property name or '}' in JSON at position 1"],
    ['{"amount"=1}', "Expected ':' after property name in JSON at position 9"],
    ['{"description":"a\tb"}', 'Bad control character in string literal in JSON at position 17'],
    ['{"description":"\\x41"}', 'Bad escaped character in JSON at position 17'],
    [
      `${one} ${two}`,
      `Unexpected non-whitespace character after JSON at position ${one.length + 1}`,
    ],
    [
      `${one}\r${two}`,
      `Unexpected non-whitespace character after JSON at position ${one.length + 1}`,
    ],
    ['{"amount":\u200b1}', 'Unexpected token \'\\u200b\', "{"amount":\\u200b1}" is not valid JSON'],
  ]
  const actual = await problems(type, cases.map(([line]) => `${line}\n`).join(''))
  t.same(
    actual,
    cases.map(([, reason], index) => `${index + 1}: not valid JSON: ${reason}`),
  )
})

t.test('Line that is not an object: rejected', async (t) => {
  const expected = 'a JSON object is expected: one portfolio transaction'
  const lines = [one, '7', '"x"', 'null', 'true', '[]', `[${one}]`]
  t.same(
    await problems(type, lines.join('\n')),
    lines.slice(1).map((_, index) => `${index + 2}: ${expected}`),
  )
})

t.test('Truncated last line: rejected', async (t) => {
  for (let end = 1; end < two.length; end += 11) {
    const [actual] = await problems(type, `${one}\n${two.slice(0, end)}`)
    t.match(actual, /^2: not valid JSON: /, two.slice(0, end))
  }
})

t.test('Invalid UTF-8: a problem of its line only', async (t) => {
  const latin1 = Buffer.from(portfolioLine(2, '"description":"España"'), 'latin1')
  const surrogate = Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])
  const overlong = Buffer.from([0xc0, 0xaf])
  const lines = [
    Buffer.from(one),
    latin1,
    surrogate,
    overlong,
    Buffer.from(portfolioLine(5, '"x":1')),
  ]
  const text = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]))
  for (const bytes of [text, Buffer.concat([Buffer.alloc(1_100_000, ' \n'), text])]) {
    const actual = await problems(type, bytes)
    t.match(
      actual.map((problem) => problem.replace(/^\d+/, 'n')),
      withLengths([
        /^n: the line is not UTF-8$/,
        /^n: the line is not UTF-8$/,
        /^n: the line is not UTF-8$/,
        /^n: x: there is no such field/,
      ]),
    )
  }
})

t.test('Line above 1 MiB: rejected; later lines are read', async (t) => {
  const long = portfolioLine(1, `"description":"${'x'.repeat(1024 * 1024)}"`)
  for (const chunkBytes of [64 * 1024, undefined]) {
    const connection = await newConnection()
    const text = `${long}\n${one}\n${portfolioLine(3, '"y":1')}\n${'z'.repeat(3_000_000)}`
    const error = await run(type, connection, text, chunkBytes ? { chunkBytes } : {}).catch(
      (e) => e,
    )
    t.match(
      error.problems,
      withLengths([
        { line: 1, reason: 'the line is longer than 1048576 bytes' },
        { line: 3, field: 'y' },
        { line: 4, reason: 'the line is longer than 1048576 bytes' },
      ]),
    )
  }
  const padding = ' '.repeat(1024 * 1024 - one.length)
  t.equal(await read(`${one}${padding}\n`), 1, 'exactly 1 MiB is accepted')
  t.match(
    await problems(type, `${one}${padding} \n`),
    withLengths(['1: the line is longer than 1048576 bytes']),
  )
})

t.test('Text: stored character by character', async (t) => {
  const texts = [
    '',
    ' ',
    '\\N',
    '\\.',
    '\\',
    'tab\there',
    'a\nb\r\nc',
    '"\'',
    '\u001b\u0001',
    '\ufeff',
    'é',
    'é',
    '漢字',
    '👩‍👩‍👧',
    '\u2028\u2029',
    '{}',
    'null',
  ]
  const connection = await newConnection()
  const lines = texts.map((text, index) =>
    accountLine(index, `"description":${JSON.stringify(text)}`),
  )
  await run('account-transactions', connection, lines.join('\n'))
  const stored = await db
    .selectFrom('account_transaction')
    .select('description')
    .where('connection_id', '=', connection.id)
    .orderBy('movement_id')
    .execute()
  t.same(
    stored.map(({ description }) => description),
    texts,
  )
})

t.test('File compressed by gzip: read; a damaged one is rejected', async (t) => {
  const long = Array.from({ length: 3_000 }, (_, id) => portfolioLine(id)).join('\n')
  const file = gzipSync(long)
  for (const bytes of [1, 7, 1_000, undefined]) t.equal(await read(file, bytes), 3_000)
  t.equal(await read(Buffer.concat([gzipSync(`${one}\n`), gzipSync(two)])), 2, 'two members')
  for (const chunkBytes of [1_000, 1, gzipSync(`${one}\n`).length]) {
    const zeros = Buffer.concat([gzipSync(`${one}\n`), Buffer.alloc(10), gzipSync(two)])
    await t.rejects(run(type, await newConnection(), zeros, { chunkBytes }), {
      name: 'OperatorError',
      message: 'rows.ndjson is damaged: bytes follow its compressed data.',
    })
  }
  t.same(await problems(type, gzipSync(`${one}\n{}`)), [
    ...['transactionId', 'portfolioId', 'type'].map((name) => `2: ${name}: the field is missing`),
    '2: operationDateDay or valueDateDay must have a value',
  ])
  const changed = Buffer.from(file)
  changed.fill(0xff, 100, 200)
  for (const damaged of [changed, file.subarray(0, 5_000)])
    await t.rejects(read(damaged), { name: 'OperatorError', message: /^rows\.ndjson is damaged: / })
})

t.test('Compressed file of several megabytes: every byte', async (t) => {
  const text = `{"a":"${randomBytes(1_500_000).toString('hex')}"}\n`
  const path = `${t.testdir()}/rows.ndjson.gz`
  await writeFile(path, gzipSync(text, { level: 1 }))
  const found: Buffer[] = []
  for await (const chunk of plainBytes(await openInput(path))) found.push(Buffer.from(chunk))
  t.ok(Buffer.concat(found).equals(Buffer.from(text)))
})

t.test('File that is no text: one sentence says what it is, and what to do', async (t) => {
  const contents: [Buffer, RegExp][] = [
    [Buffer.from(`\ufeff${one}\n`, 'utf16le'), /is UTF-16, not UTF-8: `iconv /],
    [Buffer.from(`\ufeff${one}\n`, 'utf16le').swap16(), /is UTF-16, not UTF-8: `iconv /],
    [Buffer.alloc(1000), /begins with a zero byte, .*: get it again/],
    [Buffer.from('PK\u0003\u0004 rows.xlsx'), /is a ZIP file or a spreadsheet: .* save it as CSV/],
    [zstdCompressSync(one), /is compressed by zstd: .* decompress it/],
  ]
  const connection = await newConnection()
  for (const format of ['ndjson', 'csv'] as const)
    for (const [content, message] of contents)
      for (const bytes of [content, gzipSync(content)])
        await t.rejects(run(type, connection, bytes, { format }), {
          name: 'OperatorError',
          message,
        })
})

t.test('JSON in another form: rejected with its lines', async (t) => {
  const row = JSON.parse(one)
  for (const rows of [[row], { items: [row] }]) {
    const isArray = Array.isArray(rows)
    const array = /^1: an object on each line .*jq -c '\.\[\]'/
    t.match((await problems(type, JSON.stringify(rows)))[0], isArray ? array : /^1: /)
    const onManyLines = isArray ? array : /^1: an object on one line .*jq -c \. /
    t.match((await problems(type, JSON.stringify(rows, null, 2)))[0], onManyLines)
  }
})

t.test('File that is neither text nor gzip: rejected with its line', async (t) => {
  const files = [
    Buffer.from(one, 'utf16le'),
    Buffer.from('%PDF-1.7\n'),
    Buffer.from('<!DOCTYPE html>\n<html>'),
  ]
  for (const file of files) t.match((await problems(type, file))[0], /^1: (not |the line is)/)
})

t.test('Hostile file: rejected within the limits', async (t) => {
  let nested: Buffer = Buffer.from(one)
  for (let level = 0; level < 50; level += 1) nested = gzipSync(nested, { level: 1 })
  await t.rejects(read(nested), { message: 'rows.ndjson is compressed twice.' })
  const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`
  const inArrays = `{"amount":${deep.replace('[]', '[1]')}}`
  const found = await problems(type, inArrays)
  t.ok(found.includes('1: amount: a number such as 1234.50 is expected, not an array'))
  const names = Array.from({ length: 20_000 }, (_, index) => `"n${index}":1`).join()
  t.equal((await problems(type, portfolioLine(1, names))).length, 20)
})
