import { idOf } from './random.ts'

export interface Security {
  id: string
  name: string
  isin: string
}

/** Fictional security with its market. */
export interface Instrument extends Security {
  currency: string
  /** Price of a share on the first day, in 1/100 of the currency. */
  price: number
  pays: 'DIVIDENDS' | 'COUPON' | undefined
}

const listed = [
  ['Hispania Renovables', 'ES', 'DEMO00001', 'EUR', 1_842, 'DIVIDENDS'],
  ['Banco del Ebro', 'ES', 'DEMO00002', 'EUR', 391, 'DIVIDENDS'],
  ['Nordlicht Energie AG', 'DE', 'DEMO00003', 'EUR', 6_420, 'DIVIDENDS'],
  ['Lumière & Fils', 'FR', 'DEMO00004', 'EUR', 11_275, 'DIVIDENDS'],
  ['Great Lakes Software Inc.', 'US', 'DEMO00005', 'USD', 9_860, undefined],
  ['Pacific Rail Corp.', 'US', 'DEMO00006', 'USD', 14_530, 'DIVIDENDS'],
  ['Albion Tea plc', 'GB', 'DEMO00007', 'GBP', 512, 'DIVIDENDS'],
  ['Züricher Uhren AG', 'CH', 'DEMO00008', 'CHF', 28_340, 'DIVIDENDS'],
  ['富士見電機', 'JP', 'DEMO00009', 'JPY', 214_000, 'DIVIDENDS'],
  ['Fondo Demo Renta Mixta FI', 'ES', 'DEMO00010', 'EUR', 1_074, undefined],
  ['Demo World Equity UCITS ETF', 'IE', 'DEMO00011', 'EUR', 7_310, undefined],
  ['Obligación Demo 2,35 % 2033', 'ES', 'DEMO00012', 'EUR', 10_012, 'COUPON'],
] as const

export const instruments: Instrument[] = listed.map(
  ([name, country, number, currency, price, pays]) => ({
    ...security(name, country + number),
    currency,
    price,
    pays,
  }),
)

/** Returns a fictional security. `body` is its ISIN without the check digit. */
export function security(name: string, body: string): Security {
  const isin = body + checkDigit(body)
  return { id: idOf(`instrument ${isin}`), name, isin }
}

/** Check digit of an ISIN (ISO 6166): letters count as 10 to 35, then Luhn's algorithm. */
function checkDigit(body: string): number {
  const digits = [...body].map((sign) => Number.parseInt(sign, 36)).join('')
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const doubled = Number(digit) * (index % 2 === 0 ? 2 : 1)
    return total + Math.floor(doubled / 10) + (doubled % 10)
  }, 0)
  return (10 - (sum % 10)) % 10
}
