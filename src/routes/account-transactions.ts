import { PAGE_FORMATS, pageBody } from '../http/list-body.ts'
import { pageHeaders } from '../http/page-headers.ts'
import { pageRules } from '../http/parameter-errors.ts'
import { pagedList } from '../queries/pages.ts'
import { AccountTransactions } from '../schemas/account-transaction.ts'
import { ConnectionParams, PageQuery, RequestHeaders } from '../schemas/request.ts'
import { pageResponses } from '../schemas/response.ts'
import { list } from './list.ts'

/** Section 4.2: a page, the changes since a cursor, or an export of all rows. */
export const accountTransactions = list(AccountTransactions, pagedList(AccountTransactions), {
  url: '/connections/:token/accounts/transactions',
  schema: ({ maximumLimit }) => ({
    operationId: 'listAccountTransactions',
    tags: ['Transactions'],
    summary: 'List account transactions',
    description:
      'Every change of the cash balances of a connection, newest first, in pages. ' +
      'The guide explains [dates and order](#dates-and-order), [pages](#pagination), [exports](#exports), ' +
      '[changes](#keeping-a-copy-and-the-type-unknown) and [ETags](#conditional-requests-etag).',
    params: ConnectionParams,
    querystring: PageQuery(maximumLimit),
    headers: RequestHeaders,
    response: pageResponses(AccountTransactions),
  }),
  rules: ({ maximumLimit }) => pageRules(maximumLimit),
  formats: () => PAGE_FORMATS,
  writeBody: pageBody,
  headersOf: pageHeaders,
})
