import t from 'tap'
import { parseJson } from '../../src/operator/loading/json.ts'
import { Problems } from '../../src/operator/loading/problems.ts'
import { rowParser } from '../../src/operator/loading/row-parser.ts'
import { rowTypes } from '../../src/operator/loading/row-types.ts'
import { anyText } from '../support/awkward-rows.ts'
import { portfolioLine, prepareImport } from '../support/importing.ts'
import { fc, runs } from '../support/random.ts'

/** Validates a line without a database. */
function problemsOf(line: string): string[] {
  const problems = new Problems()
  const parser = rowParser(rowTypes['portfolio-transactions'], problems)
  const value = parseJson({ text: line }, problems)
  if (value !== undefined) parser.parse(value)
  return problems.shown.map(({ detail }) => detail)
}

const parses = (text: string) => {
  try {
    return JSON.parse(text) !== undefined
  } catch {
    return false
  }
}

t.test('Random line: JSON for the import exactly if JSON.parse accepts it', async (t) => {
  // A valid line, with a few characters replaced by other JSON tokens.
  const members = '"amount":-12.50e+3,"description":"a\\u00e9\\n","retentionDetail":null'
  const valid = portfolioLine(1, members)
  const pieces = ['', '"', '\\', '{', '}', '[', ']', ',', ':', '0', '1', '-', '+', '.', 'e', 'E']
  const others = [' ', '\t', '\r', 'null', 'true', '\\u', 'x', '\u0001', '\u007f', 'é', '😀']
  const edit = fc.record({
    at: fc.nat(valid.length - 1),
    remove: fc.nat(2),
    insert: fc.constantFrom(...pieces, ...others),
  })
  fc.assert(
    fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
      const line = edits.reduce(
        (text, { at, remove, insert }) => text.slice(0, at) + insert + text.slice(at + remove),
        valid,
      )
      // Another problem may end reading before the invalid JSON.
      const problems = problemsOf(line)
      if (parses(line)) return problems.every((problem) => !problem.startsWith('not valid JSON'))
      return problems.length > 0
    }),
    { numRuns: runs(3_000) },
  )
  t.same(problemsOf(valid), [])
})

t.test(
  'Random decimal: rejected above the limits, or stored exactly, in any notation',
  async (t) => {
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
    const { run, newConnection, db } = await prepareImport(t)
    const connection = await newConnection()
    const allowed: { line: string; stored: string }[] = []
    for (const text of fc.sample(number, runs(3_000))) {
      const { units, scale } = model(text)
      const limit = 10n ** BigInt(38 + scale)
      const line = portfolioLine(allowed.length, `"amount":${text}`)
      // A zero with a large exponent has too many digits, too.
      const isAllowed = scale <= 38 && units > -limit && units < limit
      const isZero = units === 0n && /e[1-9]/.test(text)
      const isAccepted = problemsOf(line).length === 0
      if (!isZero) t.equal(isAccepted, isAllowed, text)
      if (!isAccepted) continue
      const digits = String(units)
        .replace('-', '')
        .padStart(scale + 1, '0')
      const [whole, fraction] = [digits.slice(0, digits.length - scale), digits.slice(-scale)]
      const sign = units < 0n ? '-' : ''
      allowed.push({ line, stored: `${sign}${whole}${scale > 0 ? `.${fraction}` : ''}` })
    }
    const lines = allowed.map(({ line }) => line)
    await run('portfolio-transactions', connection, lines.join('\n'))
    const stored = await db
      .selectFrom('portfolio_transaction')
      .select('amount')
      .where('connection_id', '=', connection.id)
      .orderBy('transaction_id')
      .execute()
    t.same(
      stored.map(({ amount }) => amount),
      allowed.map(({ stored }) => stored),
    )
  },
)

/** Value of a number: `units` divided by 10 to the power of `scale`. */
function model(text: string): { units: bigint; scale: number } {
  const [mantissa = '', exponent = '0'] = text.split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const shift = fraction.length - Number(exponent)
  const units = BigInt(whole.replace('-', '') + fraction) * (whole.startsWith('-') ? -1n : 1n)
  return shift >= 0 ? { units, scale: shift } : { units: units * 10n ** BigInt(-shift), scale: 0 }
}

t.test('Random rows: stored unchanged; imported again, unchanged', async (t) => {
  const { run, newConnection, db } = await prepareImport(t)
  const type = 'portfolio-transactions'
  const text = anyText(60)
  const hour = fc.stringMatching(/^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?$/)
  const digits = fc.stringMatching(/^-?(0|[1-9]\d{0,37})(\.\d{1,38})?$/)
  const [min, max] = [new Date('0001-01-01'), new Date('9999-12-31')]
  const day = fc
    .date({ min, max, noInvalidDate: true })
    .map((date) => date.toISOString().slice(0, 10))
  const row = fc.record({
    description: fc.option(text),
    originalOperationDateTz: fc.option(text),
    operationDateHour: fc.option(hour),
    valueDateDay: fc.option(day),
    amount: fc.option(digits),
    quote: fc.constantFrom('', '"'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 50 }), async (rows) => {
      const connection = await newConnection()
      const lines = rows.map(({ amount, quote, ...others }, index) => {
        const decimal = amount && quote + amount + quote
        return portfolioLine(index, `${JSON.stringify(others).slice(1, -1)},"amount":${decimal}`)
      })
      t.match(await run(type, connection, lines.join('\n')), { inserted: rows.length })
      t.match(await run(type, connection, lines.join('\n')), { unchanged: rows.length })
      const stored = await db
        .selectFrom('portfolio_transaction')
        .select(['description', 'operation_date_hour as operationDateHour'])
        .select('original_operation_date_tz as originalOperationDateTz')
        .select((one) => one.cast<string>('value_date_day', 'text').as('valueDateDay'))
        .select('amount')
        .where('connection_id', '=', connection.id)
        .orderBy('transaction_id')
        .execute()
      // PostgreSQL stores no negative zero.
      const amountOf = (digits: string) => digits.replace(/^-(0(\.0*)?)$/, '$1')
      t.same(
        stored,
        rows.map(({ quote: _, ...values }) => ({
          ...values,
          amount: values.amount && amountOf(values.amount),
        })),
      )
    }),
    { numRuns: runs(20) },
  )
})
