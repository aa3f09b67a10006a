import { build } from '../postgres/statements.ts'
import { AccountTransaction } from '../schemas/account-transaction.ts'
import { transactionList } from './list-page.ts'

const { list, queries } = transactionList(
  'account_transaction',
  AccountTransaction,
  build
    .selectFrom('account_transaction as t')
    .select([
      't.movement_id as movementId',
      't.account_id as accountId',
      't.type as type',
      't.amount as amount',
      't.exchange_rate as exchangeRate',
      't.commission as commission',
      't.taxes as taxes',
      't.currency as currency',
      't.local_currency as localCurrency',
      't.description as description',
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
    ]),
)

/** Lists the account transactions of a connection by pages (section 4.2). */
export const listAccountTransactions = list
export const accountTransactionQueries = queries
