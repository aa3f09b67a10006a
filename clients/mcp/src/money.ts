import type { Row } from './selection.ts'
import { FEE_PLACES, TAX_PLACES } from './types.ts'

/** Fields of a row that are figures of money, without its amount. */
export const CHARGES = ['commission', 'taxes', 'retentionFrom', 'retentionTo'] as const

/** Returns a field of a row; null if it is unknown, undefined if the list does not have it. */
export function chargeOf(row: Row, field: (typeof CHARGES)[number]) {
  if (field === 'commission' || field === 'taxes') return row[field]
  if (!('transactionId' in row)) return undefined
  return row.retentionDetail?.[field] ?? null
}

const FEES = ['FEES', 'FEES_REFUND']
const TAXES = ['TAXES', 'TAX_REFUND', 'DIVIDEND_RETENTION', 'DIVIDEND_RETENTION_REFUND']
/** Institutions may have withheld tax from them. */
const PAYMENTS = ['DIVIDENDS', 'COUPON', 'INTEREST']

const NEVER_ADD = 'It may be the same money: state each place, and never add them.'

/**
 * Says where the fees and taxes of a question stand.
 * @param types those of the rows
 * @param known fields with a value
 */
export function placesOf(types: Set<string>, known: Set<string>): string[] {
  const places: string[] = []
  if (FEES.some((type) => types.has(type)) || known.has('commission')) places.push(FEE_PLACES)
  const hasTaxes = ['taxes', 'retentionFrom', 'retentionTo'].some((field) => known.has(field))
  if ([...TAXES, ...PAYMENTS].some((type) => types.has(type)) || hasTaxes) places.push(TAX_PLACES)
  return places.map((place) => `${place} ${NEVER_ADD}`)
}
