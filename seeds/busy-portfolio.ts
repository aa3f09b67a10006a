import { AccountTransactionTypes } from '../src/schemas/account-transaction.ts'
import { PortfolioTransactionTypes } from '../src/schemas/portfolio-transaction.ts'
import { type Instrument, instruments } from './instruments.ts'
import { idOf, type Random, randomFrom } from './random.ts'
import { type AccountRow, type ConnectionRows, decimalText, type PortfolioRow } from './rows.ts'

interface Plan {
  /** Part of every identifier; different for each connection. */
  name: string
  seed: number
  from: string
  to: string
  maximumPerDay: number
}

interface Event extends Pick<Plan, 'name'> {
  number: number
  day: string
  hour: string | undefined
  instrument: Instrument
  random: Random
}

/** Generates purchases, sales and payments day by day, with their cash. */
export function busyPortfolio(plan: Plan): ConnectionRows {
  const random = randomFrom(plan.seed)
  const held = new Map<Instrument, bigint>()
  const portfolio: PortfolioRow[] = []
  const account: AccountRow[] = []
  for (const day of weekdays(plan.from, plan.to)) {
    for (let left = random.between(0, plan.maximumPerDay); left > 0; left -= 1) {
      const instrument = random.oneOf(instruments)
      const hour = hourOf(random)
      const event = { name: plan.name, number: portfolio.length, day, hour, instrument, random }
      const row = nextTransaction(event, held)
      portfolio.push(row)
      account.push(...cashOf(event, row))
    }
  }
  return { portfolio, account, orders: [] }
}

const DAY = 86_400_000

function* weekdays(from: string, to: string): Generator<string> {
  for (let time = Date.parse(from); time <= Date.parse(to); time += DAY) {
    const weekday = new Date(time).getUTCDay()
    if (weekday > 0 && weekday < 6) yield new Date(time).toISOString().slice(0, 10)
  }
}

/** Returns one of few times, so that transactions share a second, or undefined. */
function hourOf(random: Random): string | undefined {
  const hour = String(random.between(9, 16)).padStart(2, '0')
  return random.chance(80) ? `${hour}:${random.oneOf(['00', '15', '30'])}:00` : undefined
}

const RARE = Object.keys(PortfolioTransactionTypes).filter(
  (type) => !['BUY', 'SELL', 'DIVIDENDS', 'COUPON'].includes(type),
) as PortfolioRow['type'][]

function nextTransaction(event: Event, held: Map<Instrument, bigint>): PortfolioRow {
  const { instrument, number, random } = event
  const position = held.get(instrument) ?? 0n
  // Every 40th transaction has a rare type, in turn.
  const rare = number % 40 === 39 ? RARE[((number - 39) / 40) % RARE.length] : undefined
  const pays = position > 0n && random.chance(25) ? instrument.pays : undefined
  const sells = position > 1_000n && random.chance(35)
  const type = rare ?? pays ?? (sells ? 'SELL' : 'BUY')
  // Unit: 1/1000 share.
  const titles = pays || sells ? position : BigInt(random.between(1, 80)) * 500n
  const moved = type === 'SELL' ? titles / 2n : titles
  const [impact] = PortfolioTransactionTypes[type]
  if (impact === '+') held.set(instrument, position + moved)
  if (impact === '-') held.set(instrument, moved > position ? 0n : position - moved)
  return transactionRow(event, type, moved)
}

function transactionRow(event: Event, type: PortfolioRow['type'], titles: bigint): PortfolioRow {
  const { name, number, day, hour, instrument, random } = event
  const paid = type === 'DIVIDENDS' || type === 'COUPON'
  const drift = BigInt(
    (instrument.price + random.between(-instrument.price, instrument.price) / 5) | 0,
  )
  const price = paid ? drift / 50n + 1n : drift
  // 1/1000 share times 1/100 currency: five decimals, exact.
  const amount = titles * price
  const foreign = instrument.currency !== 'EUR'
  const rate = BigInt(random.between(80_000, 120_000))
  return {
    transactionId: idOf(`${name} transaction ${number}`),
    portfolioId: idOf(`${name} portfolio ${number % 3}`),
    type,
    titles: decimalText(titles, 3),
    price: decimalText(price, 2),
    amount: decimalText(amount, 5),
    ...(foreign
      ? {
          exchangeRate: decimalText(rate, 5),
          amountBaseCurrency: decimalText(amount * rate, 10),
          localCurrency: 'EUR',
        }
      : {}),
    commission: paid ? '0.00' : decimalText(BigInt(random.between(100, 2_500)), 2),
    taxes: paid ? decimalText((amount * 19n) / 100_000n, 2) : '0',
    currency: instrument.currency,
    description: `${type.replaceAll('_', ' ').toLowerCase()}: ${instrument.name}`,
    operationDateDay: day,
    valueDateDay: random.chance(90) ? day : null,
    ...(hour ? { operationDateHour: hour, originalOperationDateTz: 'Europe/Madrid' } : {}),
    investment: instrument.id,
    ...(paid && foreign ? { retentionDetail: { retentionFrom: '15', retentionTo: '4.00' } } : {}),
  }
}

const CASH = Object.keys(AccountTransactionTypes).filter(
  (type) => !['DIVIDENDS', 'COUPON'].includes(type),
) as AccountRow['type'][]
const PAID_OUT = /WITHDRAWAL|FEES$|TAXES|CHARGE|RETENTION$/

/** Returns the cash of a payment; for every fifth other transaction, an unrelated movement. */
function cashOf({ name, number, day, hour, random }: Event, row: PortfolioRow): AccountRow[] {
  const base = {
    movementId: idOf(`${name} movement ${number}`),
    accountId: idOf(`${name} account`),
    operationDateDay: day,
    valueDateDay: day,
    ...(hour ? { operationDateHour: hour } : {}),
  }
  if (row.type === 'DIVIDENDS' || row.type === 'COUPON') {
    const {
      amount = '0',
      taxes = '0',
      currency = null,
      investment = null,
      description = null,
    } = row
    const paid = { amount: String(amount), taxes, currency, investment, description }
    return [{ ...base, ...paid, type: row.type }]
  }
  if (number % 5 !== 0) return []
  const type = CASH[(number / 5) % CASH.length] as AccountRow['type']
  const cents = BigInt(random.between(100, 250_000)) * (PAID_OUT.test(type) ? -1n : 1n)
  return [{ ...base, type, amount: decimalText(cents, 2), currency: 'EUR' }]
}
