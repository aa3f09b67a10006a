import { type Static, Type } from '@sinclair/typebox'
import { AccountTransactionType } from './account-transaction-type.ts'
import { Component } from './component.ts'
import { DECIMAL_RULE, Decimal } from './decimal.ts'
import { Described } from './described.ts'
import { ListEnvelope } from './list-envelope.ts'
import { TransactionDates } from './transaction-dates.ts'
import { TransactionTerms } from './transaction-terms.ts'
import { Uuid } from './uuid.ts'

/**
 * A movement of cash (section 2.3). Its 21 fields are always present, in this order, and null where
 * they are not known; the two identifiers, the type and the amount always are.
 */
export const AccountTransaction = Component(
  'AccountTransaction',
  Type.Object(
    {
      movementId: Described(Uuid, {
        title: 'Movement',
        description:
          'Identifier of the transaction; it stays the same when a field of it is corrected.',
        examples: ['94c1f7a0-2e6d-4835-a7b9-0c3d5e8f1264'],
      }),
      accountId: Described(Uuid, {
        title: 'Account',
        description: 'Identifier of the one account whose balance the transaction changes.',
        examples: ['3a58e1d9-c047-4b2f-86d5-f19e7b20c4a3'],
      }),
      type: AccountTransactionType,
      amount: Described(Decimal, {
        title: 'Amount',
        description:
          'Change of the cash balance, in `currency`: positive when cash comes in to the holder, ' +
          'negative when it goes out. An institution’s own sign is passed through unchanged.',
        examples: [-49.9],
      }),
      exchangeRate: TransactionTerms.exchangeRate,
      commission: TransactionTerms.commission,
      taxes: TransactionTerms.taxes,
      currency: TransactionTerms.currency,
      localCurrency: TransactionTerms.localCurrency,
      description: TransactionTerms.description,
      ...TransactionDates,
      investment: TransactionTerms.investment,
    },
    {
      additionalProperties: false,
      title: 'Account transaction',
      description: [
        'A financial movement of cash, in one account; it always changes the balance.',
        'Every field is present; null says that it is not known.',
        DECIMAL_RULE,
      ].join(' '),
    },
  ),
)
export type AccountTransaction = Static<typeof AccountTransaction>

/** A page of account transactions (sections 2.1 and 4.2). */
export const AccountTransactionList = ListEnvelope(AccountTransaction, {
  name: 'AccountTransactionList',
  title: 'Account transactions',
  description: 'One page of the account transactions of a connection.',
})
export type AccountTransactionList = Static<typeof AccountTransactionList>
