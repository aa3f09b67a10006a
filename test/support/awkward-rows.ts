import { randomUUID } from 'node:crypto'
import { fc } from './random.ts'
import { addAccountTransactions, addPortfolioTransactions, type TestConnection } from './rows.ts'

type Db = Parameters<typeof addAccountTransactions>[0]

/** Any character except NUL, which PostgreSQL does not store, and surrogates. */
const character = fc
  .integer({ min: 1, max: 0x10ffff - 0x800 })
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800))

/** Generates text. The unit 'binary' of fast-check would first list a million characters, for a second. */
export const anyText = (maxLength: number) => fc.string({ unit: character, maxLength })

/** Texts that formats quote or escape, programs trim, or spreadsheets change. */
const TEXTS = [
  '',
  ' ',
  ' spaces before and after ',
  '\ttabs\t',
  '\u00a0no-break spaces\u00a0',
  '"',
  '""',
  'a "quoted" text',
  '"in quotes"',
  "'",
  'a,b',
  ',',
  ';',
  'one\r\ntwo\nthree\rfour',
  '\n',
  '\r',
  '\r\n',
  '\u2028\u2029\u0085\v\f',
  '\ufeffa byte order mark',
  '=1+1',
  '+1',
  '-1',
  '@SUM(A1)',
  '\\',
  '\\n \\" \\N \\.',
  'null',
  'NULL',
  '0012.50',
  'true',
  'é ñ ł ß 中文 عربى 😀 e\u0301',
  Array.from({ length: 31 }, (_, i) => String.fromCharCode(i + 1)).join(''),
  '"\nñ'.repeat(3_000),
]

const NINES = '9'.repeat(38)
const ZEROS = '0'.repeat(37)
const DECIMALS = [
  `${NINES}.${NINES}`,
  `-${NINES}.${NINES}`,
  `0.${ZEROS}1`,
  `-0.${ZEROS}1`,
  `1${ZEROS}.${ZEROS}0`,
  NINES,
  '0',
  '0.00',
  '-0.10',
  '100',
  '1.1000000000',
  '9007199254740993',
]

/** The import rejects other hours in new rows. */
const HOURS = ['09:05', '23:59:59', '00:00:00.123456789']

const fill = <Value>(columns: string, value: Value) =>
  Object.fromEntries(columns.split(' ').map((column) => [column, value]))

const DATES = [
  { operation_date_day: '0001-01-01' },
  { operation_date_day: '2024-02-29', value_date_day: '9999-12-31' },
  { value_date_day: '1969-12-31', original_value_date_day: '1970-01-01' },
]

/**
 * Adds a row for each text above to one list of a connection. The text is in each text column except hours, and a
 * decimal of up to 38 + 38 digits in each decimal column. Two more rows have null in all columns that allow it.
 */
export async function addAwkwardRows(
  db: Db,
  connection: TestConnection,
  list: 'portfolio' | 'account',
): Promise<void> {
  const add = list === 'portfolio' ? addPortfolioTransactions : addAccountTransactions
  const shortTexts = 'currency local_currency original_operation_date_tz original_value_date_tz'
  const hours =
    'operation_date_hour original_operation_date_hour value_date_hour original_value_date_hour'
  const decimals =
    list === 'portfolio'
      ? 'exchange_rate titles amount amount_base_currency commission taxes price'
      : 'amount exchange_rate commission taxes'
  const decimal = (index: number) => DECIMALS[index % DECIMALS.length]
  const rows = TEXTS.map((text, index) => ({
    description: text,
    ...fill(shortTexts, text.slice(0, 100)),
    ...fill(hours, HOURS[index % HOURS.length]),
    ...fill(decimals, decimal(index)),
    ...DATES[index % DATES.length],
    investment: randomUUID(),
    ...(list === 'portfolio' && {
      related_transaction: randomUUID(),
      // Both are null or none.
      retention_from: index % 3 === 0 ? null : decimal(index + 1),
      retention_to: index % 3 === 0 ? null : decimal(index + 2),
    }),
  }))
  await add(db, connection, ...(rows as object[]), {}, {})
}
