/**
 * Sample rows: about half of the fields are null, and a row has some 825 bytes of JSON. The same seed
 * gives the same rows on every machine, except for their days.
 */

/** Day of the newest rows: yesterday. A daily sync asks for the last days, and orders of the future are invalid. */
export const NEWEST_DAY = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)

const NEWEST_TIME = Date.parse(NEWEST_DAY)
const TYPES = ['BUY', 'BUY', 'SELL', 'DIVIDENDS', 'DIVIDENDS', 'TRANSFER_IN', 'COUPON', 'UNKNOWN']
const NAMES = [
  'Compra de acciones «Aurora Renovables, S.A.» – orden limitada',
  'Dividend "Northwind Global Equity Fund" (ACC) cash distribution',
  'Sale of Meridian Infrastructure 4.25% 2031 senior notes',
  'Rückzahlung Bergmann Maschinenbau AG, Anleihe 2019/2027',
  'Transfer in from another custodian, position of Lakeshore ETF',
]

const days: string[] = []

/** Day `back` days before the newest one. */
export function dayBefore(back: number): string {
  days[back] ??= new Date(NEWEST_TIME - back * 86_400_000).toISOString().slice(0, 10)
  return days[back]
}

/**
 * Generates portfolio transactions of one connection as newline-delimited JSON, newest first, in chunks.
 * @param rowsPerDay with 0.8, for example, one day in five has no row
 */
export async function* transactionLines(
  seed: number,
  count: number,
  rowsPerDay: number,
): AsyncGenerator<Buffer> {
  const random = numbers(seed)
  const portfolio = uuid(random)
  const assets = Array.from({ length: 40 }, () => uuid(random))
  for (let row = 0; row < count; ) {
    let text = ''
    for (const end = Math.min(row + 500, count); row < end; row += 1) {
      const back = Math.floor(row / rowsPerDay)
      text += `${JSON.stringify(transaction(random, portfolio, assets, back))}\n`
    }
    yield Buffer.from(text)
  }
}

function transaction(random: () => number, portfolio: string, assets: string[], back: number) {
  const pick = <T>(list: T[]) => list[Math.floor(random() * list.length)]
  const decimal = (most: number, digits: number) => Number((random() * most).toFixed(digits))
  const hour = random() < 0.5 ? `1${back % 10}:2${back % 6}:0${back % 7}` : null
  const type = pick(TYPES)
  const day = dayBefore(back)
  return {
    transactionId: uuid(random),
    portfolioId: portfolio,
    exchangeRate: random() < 0.3 ? decimal(1.3, 6) : null,
    type,
    titles: decimal(500, 6),
    amount: decimal(20_000, 2),
    amountBaseCurrency: decimal(20_000, 8),
    commission: random() < 0.5 ? decimal(20, 2) : null,
    taxes: null,
    currency: 'EUR',
    localCurrency: pick(['EUR', 'USD', 'GBP']),
    description: `${pick(NAMES)}, ${Math.floor(random() * 1e6)}`,
    price: decimal(400, 4),
    operationDateDay: day,
    originalOperationDateDay: hour && day,
    valueDateDay: dayBefore(Math.max(0, back - 2)),
    originalValueDateDay: null,
    operationDateHour: hour,
    originalOperationDateHour: null,
    valueDateHour: null,
    originalValueDateHour: null,
    originalOperationDateTz: hour && 'Europe/Madrid',
    originalValueDateTz: null,
    investment: pick(assets),
    relatedTransaction: type === 'SELL' ? uuid(random) : null,
    retentionDetail: type === 'DIVIDENDS' ? { retentionFrom: 19, retentionTo: 15 } : null,
  }
}

/** Generates transfer orders of one connection; one in four is not completed, so not listed. */
export async function* orderLines(seed: number, count: number): AsyncGenerator<Buffer> {
  const random = numbers(seed)
  for (let row = 0; row < count; row += 1) {
    yield Buffer.from(`${JSON.stringify(order(random, row))}\n`)
  }
}

function order(random: () => number, row: number) {
  return {
    id: uuid(random),
    portfolio: uuid(random),
    investment: uuid(random),
    name: NAMES[row % NAMES.length],
    isin: `ES01${String(Math.floor(random() * 1e8)).padStart(8, '0')}`,
    currency: 'EUR',
    assetType: row % 2 === 0 ? 'FUND' : 'STOCK',
    titles: Number((random() * 900).toFixed(5)),
    amount: Number((random() * 90_000).toFixed(2)),
    total: row % 3 === 0,
    marketer: { name: 'Puerto Valores', cif: 'A00000000' },
    managementCompany: row % 2 === 0 ? { name: 'Faro Gestión', cif: 'B00000000' } : null,
    completedAt: row % 4 === 3 ? null : `${dayBefore(row)}T10:00:00Z`,
  }
}

const CASH = ['DIVIDENDS', 'FEES', 'DEPOSIT', 'TAXES', 'INTEREST', 'UNKNOWN']

function movement(random: () => number, account: string, day: string) {
  return {
    movementId: uuid(random),
    accountId: account,
    type: CASH[Math.floor(random() * CASH.length)],
    amount: Number((random() * 2_000 - 500).toFixed(2)),
    currency: 'EUR',
    description: `${NAMES[Math.floor(random() * NAMES.length)]}, ${Math.floor(random() * 1e6)}`,
    operationDateDay: day,
    valueDateDay: day,
  }
}

/**
 * Generates the lists of one connection for a refresh: 13 rows. On each day, one portfolio transaction is new, and an
 * account transaction on three of ten days.
 */
export function refreshLists(seed: number, day: number) {
  const idOf = (list: number) => uuid(numbers(seed * 4 + list))
  const [portfolio, account] = [idOf(0), idOf(1)]
  // The first numbers of similar seeds are similar.
  const randomOf = (list: number, row: number) => numbers((seed * 4 + list) * 7_919 + row * 104_729)
  const list = <T>(rows: number, first: number, row: (index: number) => T) =>
    Array.from({ length: rows }, (_, index) => row(first + index))
  return {
    portfolioTransactions: list(7, day, (row) =>
      transaction(randomOf(2, row), portfolio, [account], 1_000 - row),
    ),
    accountTransactions: list(5, Math.floor(day * 0.3), (row) =>
      movement(randomOf(3, row), account, dayBefore(1_000 - row)),
    ),
    transferOrders: [order(numbers(seed), 0)],
  }
}

/** Uniform numbers from 0 to 1, by a linear congruential generator. */
function numbers(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function uuid(random: () => number): string {
  const digits = (bits: number) =>
    Math.floor((random() + 1) * 2 ** bits)
      .toString(16)
      .slice(1)
  return `${digits(32)}-${digits(16)}-4${digits(12)}-8${digits(12)}-${digits(32)}${digits(16)}`
}
