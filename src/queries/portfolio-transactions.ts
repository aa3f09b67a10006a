import { build } from '../postgres/statements.ts'
import { PortfolioTransaction } from '../schemas/portfolio-transaction.ts'
import { transactionList } from './list-page.ts'

const { list, queries } = transactionList(
  'portfolio_transaction',
  PortfolioTransaction,
  build
    .selectFrom('portfolio_transaction as t')
    .select([
      't.transaction_id as transactionId',
      't.portfolio_id as portfolioId',
      't.exchange_rate as exchangeRate',
      't.type as type',
      't.titles as titles',
      't.amount as amount',
      't.amount_base_currency as amountBaseCurrency',
      't.commission as commission',
      't.taxes as taxes',
      't.currency as currency',
      't.local_currency as localCurrency',
      't.description as description',
      't.price as price',
      't.operation_date_day as operationDateDay',
      't.original_operation_date_day as originalOperationDateDay',
      't.value_date_day as valueDateDay',
      't.original_value_date_day as originalValueDateDay',
      't.operation_date_hour as operationDateHour',
      't.original_operation_date_hour as originalOperationDateHour',
      't.value_date_hour as valueDateHour',
      't.original_value_date_hour as originalValueDateHour',
      't.original_operation_date_tz as originalOperationDateTz',
      't.original_value_date_tz as originalValueDateTz',
      't.investment as investment',
      't.related_transaction as relatedTransaction',
      't.retention_from as retentionDetail.retentionFrom',
      't.retention_to as retentionDetail.retentionTo',
    ]),
)

/** Lists the portfolio transactions of a connection by pages (section 4.1). */
export const listPortfolioTransactions = list
export const portfolioTransactionQueries = queries
