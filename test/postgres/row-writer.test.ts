import type { TObject, TSchema } from '@sinclair/typebox'
import type pg from 'pg'
import t from 'tap'
import { bodyOf } from '../../src/json/response-body.ts'
import { rowWriters } from '../../src/json/row-writer.ts'
import { Limits } from '../../src/limits/limits.ts'
import type { MemoryAccount } from '../../src/limits/memory-account.ts'
import { Tenant } from '../../src/limits/tenants.ts'
import { connect } from '../../src/postgres/connect.ts'
import { RawQuery, RawRows } from '../../src/postgres/wire/query.ts'
import { AccountTransactions } from '../../src/schemas/account-transaction.ts'
import { isNullable, resolved } from '../../src/schemas/fields.ts'
import type { Format, List } from '../../src/schemas/list.ts'
import { lists } from '../../src/schemas/lists.ts'
import { PortfolioTransactions } from '../../src/schemas/portfolio-transaction.ts'
import { anyText } from '../support/awkward-rows.ts'
import { accountOf, createDatabase, openClient } from '../support/database.ts'
import { countNumbers, parseExact, unquoteDecimals } from '../support/exact-json.ts'
import { fc, runs } from '../support/random.ts'

/** Rows as bytes become JSON: the same items as those built from the values of plain pg. */

type Row = Record<string, string | boolean | null>
type Field = string | null

const { url } = await createDatabase(t)
const plain = await openClient(t, url)
const client = await connect({ url, statementTimeoutMs: 20_000, pooler: false })
t.teardown(() => client.end())

/** Columns of the lookup, which the writer skips. */
const SKIPPED = 2
const FRAME = { opening: '{"items":[', closing: '],"limit":1000}' }

const CONTROLS = Array.from({ length: 31 }, (_, code) => String.fromCharCode(code + 1)).join('')
const awkward = fc.constantFrom(
  CONTROLS,
  '"',
  '\\',
  '\\"',
  '\\u0041',
  '\u007f\u0080\u009f',
  '\u2028\u2029\ufeff\ufffe\uffff',
  'é€😀e\u0301',
  '</script>',
  'null',
  '',
)
const text = fc.oneof(awkward, anyText(40))
const digits = fc.bigInt({ min: 0n, max: 10n ** 38n - 1n }).map(String)
const decimal = fc
  .tuple(fc.constantFrom('', '-'), digits, fc.option(digits, { nil: '' }))
  .map(([sign, whole, fraction]) => `${sign}${whole}${fraction && `.${fraction}`}`)
const day = fc
  .date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
  .map((date) => date.toISOString().slice(0, 10))

const typesOf = (schema: TSchema) => [schema.type].flat()

/** The members of an object schema, without references. */
const membersOf = ({ properties }: TObject) =>
  Object.entries<TSchema>(properties).map(([name, property]) => ({
    name,
    schema: resolved(property),
    nullable: isNullable(property),
  }))

function arbitraryOf(schema: TSchema): fc.Arbitrary<string | boolean> {
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.format === 'uuid') return fc.uuid()
  if (schema.format === 'date') return day
  if (schema.format === 'decimal') return decimal
  return typesOf(schema).includes('boolean') ? fc.boolean() : text
}

/** The columns of a row by their names, such as `marketer.cif`. A member is null with its object. */
function rowOf({ item }: List, withNulls = true): fc.Arbitrary<Row> {
  const members = membersOf(item).map(({ name, schema, nullable }) => {
    const columns: fc.Arbitrary<Row> = schema.properties
      ? fc.record(prefixed(name, schema as TObject))
      : fc.record({ [name]: arbitraryOf(schema) })
    const nulls = { [name]: null }
    return withNulls && nullable ? fc.oneof(fc.constant(nulls), columns) : columns
  })
  return fc.tuple(...members).map((parts) => Object.assign({}, ...parts))
}

const prefixed = (name: string, object: TObject) =>
  Object.fromEntries(
    membersOf(object).map((member) => [`${name}.${member.name}`, arbitraryOf(member.schema)]),
  )

/** A SELECT of rows that are given as JSON, with the types of the service's columns. */
function selectOf(item: TObject): string {
  const columns = membersOf(item).flatMap(({ name, schema }) =>
    schema.properties
      ? membersOf(schema as TObject).map((member) => ({
          name: `${name}.${member.name}`,
          schema: member.schema,
        }))
      : [{ name, schema }],
  )
  const types = columns.map(({ name, schema }) => `"${name}" ${columnType(schema)}`)
  const lookup = Array.from({ length: SKIPPED }, (_, n) => (n === 0 ? 'null' : `'skipped'`))
  return `select ${lookup.join(', ')}, row.* from json_to_recordset($1::json) as row (${types.join(', ')})`
}

function columnType(schema: TSchema): string {
  if (schema.format === 'decimal') return 'numeric'
  if (schema.format === 'uuid' || schema.format === 'date') return schema.format
  return typesOf(schema).includes('boolean') ? 'boolean' : 'text'
}

async function readRaw(item: TObject, rows: Row[], memory?: MemoryAccount) {
  const raw = new RawRows(memory)
  return new Promise<RawRows>((resolve, reject) =>
    client.query(
      new RawQuery(
        { name: '', title: '', text: selectOf(item) },
        [JSON.stringify(rows)],
        raw,
        (error) => (error ? reject(error) : resolve(raw)),
      ),
    ),
  )
}

/** The items that the response must have. A number is its digits. */
async function readPlain({ item }: List, rows: Row[]): Promise<unknown[]> {
  const types = { getTypeParser: () => (field: string) => field }
  const query = { text: selectOf(item), values: [JSON.stringify(rows)], rowMode: 'array' as const }
  const result = await plain.query<Field[]>({ ...query, types: types as pg.CustomTypesConfig })
  return result.rows.map((fields) => itemOf(item, fields.slice(SKIPPED)))
}

/** Takes the fields of the row from the front, in the order of the schema. */
function itemOf(item: TObject, fields: Field[]): unknown {
  const members = membersOf(item).map(({ name, schema }) => {
    if (schema.properties === undefined) return [name, valueFrom(schema, fields.shift())]
    const isNull = fields[0] === null
    const inner = itemOf(schema as TObject, fields)
    return [name, isNull ? null : inner]
  })
  return Object.fromEntries(members)
}

function valueFrom(schema: TSchema, field: Field | undefined): unknown {
  if (field === null || field === undefined) return null
  if (schema.format === 'decimal') return { digits: field }
  return typesOf(schema).includes('boolean') ? field === 't' : field
}

const limits = new Limits(1, 2 ** 26)
const { memory } = limits

const writingOf = (memory: MemoryAccount) => ({
  memory,
  scheduler: limits.writeScheduler,
  tenant: new Tenant('app'),
})

interface WriteOptions {
  /** Of which the rows and the body take memory. */
  account?: MemoryAccount
  format?: Format
  /** True if the chunks so far leave the process before the next one is written. */
  leaves?: () => boolean
}

/** Writes rows as a response. A chunk that has not left the process is read later. */
async function write(list: List, rows: Row[], options: WriteOptions = {}): Promise<string> {
  const { account = accountOf(limits), format = 'json', leaves } = options
  const raw = await readRaw(list.item, rows, account)
  const body = await bodyOf(raw, rowWriters(list)[format], FRAME, writingOf(account))
  const sent: Buffer[] = []
  const kept: Buffer[] = []
  const send = () => sent.push(...kept.splice(0).map((chunk) => Buffer.from(chunk)))
  const isSent = () => leaves?.() !== false && send() > 0
  if (Buffer.isBuffer(body)) kept.push(body)
  else for await (const chunk of body(isSent)) kept.push(chunk)
  send()
  account.close(true)
  return Buffer.concat(sent).toString()
}

function sameItems(json: string, expected: unknown[]): void {
  const body = parseExact(json)
  if (body.limit?.digits !== '1000') throw new Error('the frame is not as given')
  if (body.items.length !== expected.length) throw new Error(`${body.items.length} items`)
  for (const [n, item] of body.items.entries()) {
    // As text, so that the order of the fields counts as well.
    const [a, b] = [JSON.stringify(item), JSON.stringify(expected[n])]
    if (a !== b) throw new Error(`${a}\ninstead of ${b}`)
  }
}

for (const list of lists) {
  const { name, item } = list

  t.test(`${name}: any row is written as plain pg reads it`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(rowOf(list), { maxLength: 30 }), async (rows) =>
        sameItems(await write(list, rows), await readPlain(list, rows)),
      ),
      { numRuns: runs(60) },
    )
  })

  t.test(`${name}: exact decimals are the default bytes in quotes`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(rowOf(list), { maxLength: 30 }), async (rows) => {
        const exact = await write(list, rows, { format: 'exactJson' })
        if (countNumbers(exact) > 0) throw new Error(`a decimal without quotes: ${exact}`)
        if (unquoteDecimals(exact) !== (await write(list, rows))) throw new Error(exact)
      }),
      { numRuns: runs(60) },
    )
  })

  t.test(`${name}: every field alone is null, and every field alone is not`, async (t) => {
    const [full] = fc.sample(rowOf(list, false), 1) as [Row]
    const nullable = membersOf(item).filter((member) => member.nullable)
    const without = (names: string[]) =>
      Object.fromEntries(
        Object.entries(full).filter(([column]) => !names.includes(column.split('.')[0] as string)),
      )
    const names = nullable.map((member) => member.name)
    const rows = [
      full,
      without(names),
      ...names.map((field) => without([field])),
      ...names.map((field) => without(names.filter((other) => other !== field))),
    ]
    sameItems(await write(list, rows), await readPlain(list, rows))
    t.equal(rows.length, 2 + 2 * names.length)
  })
}

t.test('every ASCII character: the same text, and escaped where JSON demands it', async (t) => {
  const [row] = fc.sample(rowOf(AccountTransactions), 1) as [Row]
  const ascii = Array.from({ length: 127 }, (_, code) => String.fromCharCode(code + 1))
  // The writer reads text in words, so each character is at each place of a word.
  const texts = ascii.flatMap((each) => [
    each,
    `${each}abc`,
    `é${each}a`,
    `abc${each}`,
    `abcd${each}`,
  ])
  const rows = texts.map((description) => ({ ...row, description }))
  const json = await write(AccountTransactions, rows)
  sameItems(json, await readPlain(AccountTransactions, rows))
  for (const character of json) if (character < ' ') t.fail('a control character is not escaped')
  t.match(json, '"description":"\u007f"')
})

t.test('more sets of null columns than templates are kept: each row has its own', async () => {
  const rows = fc.sample(rowOf(PortfolioTransactions), 1_500)
  const sets = new Set(
    rows.map((row) =>
      Object.keys(row)
        .filter((name) => row[name] === null)
        .join(),
    ),
  )
  t.ok(sets.size > 1_000, `${sets.size} sets`)
  // The second half repeats the sets of the first, whose templates are gone.
  const twice = [...rows, ...rows]
  sameItems(
    await write(PortfolioTransactions, twice),
    await readPlain(PortfolioTransactions, twice),
  )
})

/** Rows of any length around the size of a chunk (256 KiB). */
const longRows = fc
  .array(
    fc.tuple(
      fc.constantFrom('x', '\u0001', 'é', '"'),
      fc.oneof(fc.nat(200), fc.integer({ min: 9_000, max: 12_000 }), fc.nat(140_000)),
      fc.integer({ min: 1, max: 12 }),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((parts) =>
    parts.flatMap(([unit, length, times]) =>
      Array.from({ length: times }, (_, n) => ({ ...fixed, description: unit.repeat(length) + n })),
    ),
  )
const [fixed] = fc.sample(rowOf(AccountTransactions), 1) as [Row]

t.test('long texts: the same items, also if some chunks leave later', async () => {
  await fc.assert(
    fc.asyncProperty(longRows, fc.array(fc.boolean()), async (rows, pattern) => {
      let chunks = 0
      const leaves = () => pattern[chunks++ % pattern.length] ?? true
      const json = await write(AccountTransactions, rows, { leaves })
      sameItems(json, await readPlain(AccountTransactions, rows))
    }),
    { numRuns: runs(40) },
  )
  t.equal(memory.used, 0)
})

t.test('a long end, such as that of many removed rows: not every row takes a chunk', async (t) => {
  const rows = Array.from({ length: 1_000 }, () => ({ ...fixed, description: 'x'.repeat(1_200) }))
  const account = accountOf(limits)
  const raw = await readRaw(AccountTransactions.item, rows, account)
  const closing = `],"removed":["${'x'.repeat(300_000)}"],"limit":1000}`
  const body = await bodyOf(
    raw,
    rowWriters(AccountTransactions).json,
    { ...FRAME, closing },
    writingOf(account),
  )
  const chunks: Buffer[] = []
  if (!Buffer.isBuffer(body)) for await (const chunk of body(() => false)) chunks.push(chunk)
  account.close(true)
  t.ok(chunks.length > 2 && chunks.length < 100, `${chunks.length} chunks`)
  sameItems(Buffer.concat(chunks).toString(), await readPlain(AccountTransactions, rows))
})

t.test('a small memory: rows are rejected as a whole, and the memory is free again', async (t) => {
  // One tenant has 300,000 bytes: less than all rows need, and more than 20 rows and their blocks.
  const small = new Limits(1, 400_000)
  const rows = Array.from({ length: 50 }, () => ({ ...fixed, description: 'x'.repeat(9_000) }))
  const expected = await readPlain(AccountTransactions, rows)
  const rejected = accountOf(small)
  const raw = await readRaw(AccountTransactions.item, rows, rejected)
  t.match(raw.error, { code: 'response_too_large' })
  rejected.close(true)
  t.equal(small.memory.used, 0)
  const few = rows.slice(0, 20)
  const account = accountOf(small)
  sameItems(await write(AccountTransactions, few, { account }), expected.slice(0, 20))
  t.equal(small.memory.used, 0)
})
