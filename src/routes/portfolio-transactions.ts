import { PAGE_FORMATS, pageBody } from '../http/list-body.ts'
import { pageHeaders } from '../http/page-headers.ts'
import { pageRules } from '../http/parameter-errors.ts'
import { pagedList } from '../queries/pages.ts'
import { PortfolioTransactions } from '../schemas/portfolio-transaction.ts'
import { ConnectionParams, PageQuery, RequestHeaders } from '../schemas/request.ts'
import { pageResponses } from '../schemas/response.ts'
import { list } from './list.ts'

/** Section 4.1: a page, the changes since a cursor, or an export of all rows. */
export const portfolioTransactions = list(PortfolioTransactions, pagedList(PortfolioTransactions), {
  url: '/connections/:token/portfolios/transactions',
  schema: ({ maximumLimit }) => ({
    operationId: 'listPortfolioTransactions',
    tags: ['Transactions'],
    summary: 'List portfolio transactions',
    description:
      'Every movement of the investments of a connection, newest first, in pages. ' +
      'The guide explains [dates and order](#dates-and-order), [pages](#pagination), [exports](#exports), ' +
      '[changes](#keeping-a-copy-and-the-type-unknown) and [ETags](#conditional-requests-etag).',
    params: ConnectionParams,
    querystring: PageQuery(maximumLimit),
    headers: RequestHeaders,
    response: pageResponses(PortfolioTransactions),
  }),
  rules: ({ maximumLimit }) => pageRules(maximumLimit),
  formats: () => PAGE_FORMATS,
  writeBody: pageBody,
  headersOf: pageHeaders,
})
