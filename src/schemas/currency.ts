import type { Static } from '@sinclair/typebox'
import { Described } from './described.ts'
import { ShortText } from './text.ts'

/**
 * The code of a currency. Open, because institutions also write codes that ISO 4217 does not have:
 * GBX for pence, or the ticker of a coin.
 */
export const Currency = Described(ShortText, {
  title: 'Currency',
  description:
    'Code of a currency: ISO 4217 as a rule, or what the institution writes (GBX for pence).',
  examples: ['EUR'],
})
export type Currency = Static<typeof Currency>
