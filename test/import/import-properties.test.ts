import fc from 'fast-check'
import t from 'tap'
import { kinds } from '../../src/operator/import/import-types.ts'
import { RowReader } from '../../src/operator/import/row-reader.ts'
import { plainDecimal } from '../../src/operator/import/rules.ts'
import { portfolioLine, prepareImport } from './importing.ts'

/** The faults of a line, without a database. */
function faultsOf(line: string): string[] {
  const faults: string[] = []
  const reader = new RowReader(kinds['portfolio-transactions'], (reason) => faults.push(reason))
  reader.read(Buffer.from(`${line}\n`), 0, 1)
  return faults
}

const parses = (text: string) => {
  try {
    return JSON.parse(text) !== undefined
  } catch {
    return false
  }
}

t.test('A line is JSON to the import exactly where it is to JSON.parse', async (t) => {
  // A sound line, with a few characters of it replaced by others that mean something in JSON.
  const members = '"amount":-12.50e+3,"description":"a\\u00e9\\n","retentionDetail":null'
  const sound = portfolioLine(1, members)
  const pieces = ['', '"', '\\', '{', '}', '[', ']', ',', ':', '0', '1', '-', '+', '.', 'e', 'E']
  const others = [' ', '\t', '\r', 'null', 'true', '\\u', 'x', '\u0001', '\u007f', 'é', '😀']
  const edit = fc.record({
    at: fc.nat(sound.length - 1),
    remove: fc.nat(2),
    insert: fc.constantFrom(...pieces, ...others),
  })
  fc.assert(
    fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
      const line = edits.reduce(
        (text, { at, remove, insert }) => text.slice(0, at) + insert + text.slice(at + remove),
        sound,
      )
      // A fault of the row may come first, and end the reading of a nested object early.
      const faults = faultsOf(line)
      if (parses(line)) return faults.every((fault) => !fault.startsWith('not valid JSON'))
      return faults.length > 0
    }),
    { numRuns: 3_000 },
  )
  t.same(faultsOf(sound), [])
})

t.test('A decimal is the number that was written, whatever its form', async (t) => {
  const number = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.stringMatching(/^(0|[1-9]\d{0,40})$/),
      fc.stringMatching(/^\d{0,40}$/),
      fc.option(fc.integer({ min: -80, max: 80 })),
    )
    .map(([sign, whole, fraction, exponent]) => {
      const mantissa = `${sign}${whole}${fraction && `.${fraction}`}`
      return exponent === null ? mantissa : `${mantissa}e${exponent}`
    })
  fc.assert(
    fc.property(number, (text) => {
      const { units, scale } = model(text)
      const limit = 10n ** BigInt(38 + scale)
      const allowed = scale <= 38 && units > -limit && units < limit
      const plain = plainDecimal(text)
      if (!allowed) return plain === undefined
      const [, fraction = ''] = String(plain).split('.')
      return fraction.length === scale && BigInt(String(plain).replace('.', '')) === units
    }),
    { numRuns: 3_000 },
  )
  t.end()
})

/** A number as an integer of so many decimals. */
function model(text: string): { units: bigint; scale: number } {
  const [mantissa = '', exponent = '0'] = text.split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const shift = fraction.length - Number(exponent)
  const units = BigInt(whole.replace('-', '') + fraction) * (whole.startsWith('-') ? -1n : 1n)
  return shift >= 0 ? { units, scale: shift } : { units: units * 10n ** BigInt(-shift), scale: 0 }
}

t.test('What goes in is what comes out', async (t) => {
  const { run, newConnection, db } = await prepareImport(t)
  const kind = 'portfolio-transactions'
  const text = fc.string({ unit: 'binary', maxLength: 60 }).filter((value) => !value.includes('\0'))
  const digits = fc.stringMatching(/^-?(0|[1-9]\d{0,37})(\.\d{1,38})?$/)
  const [min, max] = [new Date('0001-01-01'), new Date('9999-12-31')]
  const day = fc
    .date({ min, max, noInvalidDate: true })
    .map((date) => date.toISOString().slice(0, 10))
  const row = fc.record({
    description: fc.option(text),
    operationDateHour: fc.option(text),
    valueDateDay: fc.option(day),
    amount: fc.option(digits),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 50 }), async (rows) => {
      const connection = await newConnection()
      const lines = rows.map(({ amount, ...others }, index) =>
        portfolioLine(index, `${JSON.stringify(others).slice(1, -1)},"amount":${amount}`),
      )
      t.match(await run(kind, connection, lines.join('\n')), { inserted: rows.length })
      t.match(await run(kind, connection, lines.join('\n')), { unchanged: rows.length })
      const stored = await db
        .selectFrom('portfolio_transaction')
        .select(['description', 'operation_date_hour as operationDateHour'])
        .select((one) => one.cast<string>('value_date_day', 'text').as('valueDateDay'))
        .select('amount')
        .where('connection_id', '=', connection.id)
        .orderBy('transaction_id')
        .execute()
      // A zero has no sign in PostgreSQL.
      const amountOf = (digits: string) => digits.replace(/^-(0(\.0*)?)$/, '$1')
      t.same(
        stored,
        rows.map((values) => ({ ...values, amount: values.amount && amountOf(values.amount) })),
      )
    }),
    { numRuns: 20 },
  )
})
