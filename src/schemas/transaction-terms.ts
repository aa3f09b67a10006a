import { Currency } from './currency.ts'
import { Decimal } from './decimal.ts'
import { Nullable } from './nullable.ts'
import { LongText } from './text.ts'
import { Uuid } from './uuid.ts'

/** What both kinds of transaction say about cost, currency and subject (sections 2.2 and 2.3). */
export const TransactionTerms = {
  exchangeRate: Nullable(Decimal, {
    title: 'Exchange rate',
    description:
      'Rate between two currencies that the institution applied, as it states it. The contract ' +
      'does not say which of them is the divisor: compare the amounts before you convert.',
    examples: [1.0842],
  }),
  commission: Nullable(Decimal, {
    title: 'Commission',
    description:
      'What the institution charged for the transaction, in `currency`. The sign is the ' +
      'institution’s: some write a charge as a negative number.',
    examples: [4.95],
  }),
  taxes: Nullable(Decimal, {
    title: 'Taxes',
    description:
      'Taxes on the transaction, in `currency`. The sign is the institution’s: some write a ' +
      'charge as a negative number.',
    examples: [12.31],
  }),
  currency: Nullable(Currency, {
    title: 'Currency',
    description:
      'Currency of the amounts: an ISO 4217 code as a rule, otherwise what the institution writes ' +
      '(GBX for pence). Null where it names none.',
    examples: ['EUR'],
  }),
  localCurrency: Nullable(Currency, {
    title: 'Local currency',
    description:
      'Second currency of the transaction, such as the one in which the asset is quoted, where ' +
      'the institution names one.',
    examples: ['USD'],
  }),
  description: Nullable(LongText, {
    title: 'Description',
    description: 'Text that the institution gives the transaction, in its own language.',
    examples: ['Dividendo 0,25 €/acción'],
  }),
  investment: Nullable(Uuid, {
    title: 'Investment',
    description: 'Identifier of the investment that the transaction is about.',
    examples: ['c1a9e0f2-6d3b-4b7e-9a51-70d2f8b3e645'],
  }),
}
