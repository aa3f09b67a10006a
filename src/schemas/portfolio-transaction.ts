import { type Static, Type } from '@sinclair/typebox'
import { Component } from './component.ts'
import { DECIMAL_RULE, Decimal } from './decimal.ts'
import { Described } from './described.ts'
import { ListEnvelope } from './list-envelope.ts'
import { Nullable } from './nullable.ts'
import { PortfolioTransactionType } from './portfolio-transaction-type.ts'
import { TransactionDates } from './transaction-dates.ts'
import { TransactionTerms } from './transaction-terms.ts'
import { Uuid } from './uuid.ts'

const RetentionDetail = Type.Object(
  {
    retentionFrom: Described(Decimal, {
      title: 'Retention at the origin',
      description: 'What was retained on the side that pays, as the institution states it.',
      examples: [15],
    }),
    retentionTo: Described(Decimal, {
      title: 'Retention at the destination',
      description: 'What was retained on the side that is paid, as the institution states it.',
      examples: [4],
    }),
  },
  { additionalProperties: false },
)

/**
 * A movement of an investment (section 2.2). Its 26 fields are always present, in this order, and
 * null where they are not known; the two identifiers and the type always are.
 */
export const PortfolioTransaction = Component(
  'PortfolioTransaction',
  Type.Object(
    {
      transactionId: Described(Uuid, {
        title: 'Transaction',
        description:
          'Identifier of the transaction; it stays the same when a field of it is corrected.',
        examples: ['0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863'],
      }),
      portfolioId: Described(Uuid, {
        title: 'Portfolio',
        description: 'Identifier of the one portfolio that the transaction belongs to.',
        examples: ['7d94b2e8-15fa-4c60-9e3b-a8c1d6024f57'],
      }),
      exchangeRate: TransactionTerms.exchangeRate,
      type: PortfolioTransactionType,
      titles: Nullable(Decimal, {
        title: 'Shares',
        description:
          'Number of shares or other units, fractions included. `type` tells whether they are ' +
          'added, removed, or only the size of the position.',
        examples: [25.5],
      }),
      amount: Nullable(Decimal, {
        title: 'Amount',
        description: 'Money that the transaction moves, in `currency`.',
        examples: [312.38],
      }),
      amountBaseCurrency: Nullable(Decimal, {
        title: 'Amount in the base currency',
        description: 'The same amount in the base currency of the portfolio.',
        examples: [288.12],
      }),
      commission: TransactionTerms.commission,
      taxes: TransactionTerms.taxes,
      currency: TransactionTerms.currency,
      localCurrency: TransactionTerms.localCurrency,
      description: TransactionTerms.description,
      price: Nullable(Decimal, {
        title: 'Price',
        description: 'Price of one share or unit.',
        examples: [12.25],
      }),
      ...TransactionDates,
      investment: TransactionTerms.investment,
      relatedTransaction: Nullable(Uuid, {
        title: 'Related transaction',
        description:
          'The `transactionId` of the transaction that this one goes with, such as the other ' +
          'side of a split.',
        examples: ['e2d70a4c-3b98-4f15-8c6a-91b5f4037d2e'],
      }),
      retentionDetail: Nullable(RetentionDetail, {
        title: 'Retention',
        description:
          'What was retained of a payment. Both members are given, or the whole is null.',
        examples: [{ retentionFrom: 15, retentionTo: 4 }],
      }),
    },
    {
      additionalProperties: false,
      title: 'Portfolio transaction',
      description: [
        'A financial movement of an investment, in one portfolio.',
        'Every field is present; null says that it is not known.',
        DECIMAL_RULE,
        'Signs are those of the institution. The demo data holds magnitudes throughout, and the',
        'direction is in `type`.',
      ].join(' '),
    },
  ),
)
export type PortfolioTransaction = Static<typeof PortfolioTransaction>

/** A page of portfolio transactions (sections 2.1 and 4.1). */
export const PortfolioTransactionList = ListEnvelope(PortfolioTransaction, {
  name: 'PortfolioTransactionList',
  title: 'Portfolio transactions',
  description: 'One page of the portfolio transactions of a connection.',
})
export type PortfolioTransactionList = Static<typeof PortfolioTransactionList>
