import { type Static, Type } from '@sinclair/typebox'
import { EFFECTIVE_DATE } from './fields.ts'
import { DEFAULT_LIMIT, DEFAULT_PAGE, MAXIMUM_PAGE } from './list.ts'

/** Parameters in the path of each list. A malformed token gets 404, too. */
export const ConnectionParams = Type.Object({
  token: Type.String({
    description:
      'Selects the connection. The token is a credential: keep it out of logs and shared links. ' +
      'An unknown token and a token of another app get the same 404.',
  }),
})

/** Request headers of each list. No value of them is rejected. `Authorization` is the security scheme. */
export const RequestHeaders = Type.Object({
  'If-None-Match': Type.Optional(
    Type.String({
      description:
        '`ETag` of a response that you have stored. If nothing has changed since, the response ' +
        'is 304 without a body.',
      examples: ['W/"184.1741966927042118-Zk3yQm0v8T1xWb6sLr2dJg"'],
    }),
  ),
  'X-Client-Trace-ID': Type.Optional(
    Type.String({
      description:
        'Your name for the request, up to 128 visible ASCII characters. The response repeats it. ' +
        'Any other value is ignored.',
      examples: ['sync-2025-03-14-0042'],
    }),
  ),
})

/** Digits only: no sign, blank, point or exponent. */
const DIGITS = '^[0-9]+$'

/**
 * Query parameters of a list with pages (sections 4.1 and 4.2). Their values are strings. http/parameter-errors.ts has the
 * rules that a schema cannot express.
 * `since` and `version` have no example: tools that import the document send each example, and these two exclude others.
 */
export function PageQuery(maximumLimit: number) {
  return Type.Object(
    {
      from: Type.Optional(
        Type.String({
          format: 'date',
          description:
            `First day of the result, inclusive, as YYYY-MM-DD. It is compared with ` +
            `${EFFECTIVE_DATE}. Without it, the result starts with the oldest row.`,
          examples: ['2025-01-01'],
        }),
      ),
      to: Type.Optional(
        Type.String({
          format: 'date',
          description:
            'Last day of the result, inclusive, as YYYY-MM-DD; not before `from`. It is compared ' +
            'with the same date as `from`. Without it, the result ends with the newest row.',
          examples: ['2025-03-31'],
        }),
      ),
      limit: Type.Optional(
        Type.String({
          pattern: DIGITS,
          default: String(DEFAULT_LIMIT),
          description:
            `Rows of a page, 1 to ${maximumLimit}, in digits; ${DEFAULT_LIMIT} without it. A larger value is rejected ` +
            'with 400, because a smaller page would lose rows.',
          examples: ['100'],
        }),
      ),
      page: Type.Optional(
        Type.String({
          pattern: DIGITS,
          default: String(DEFAULT_PAGE),
          description:
            `Number of the page, 0 to ${MAXIMUM_PAGE}, in digits; the first page is 0. A page ` +
            'past the last one has no items, and has `totalItems`.',
          examples: ['0'],
        }),
      ),
      since: Type.Optional(
        Type.String({
          description:
            'Returns the changes instead of a page. `start` returns all rows. Later requests send ' +
            'the `nextCursor` of the previous response. Not together with `from`, `to` or `page`.',
        }),
      ),
      version: Type.Optional(
        Type.String({
          pattern: '^[0-9]{1,19}\\.[0-9]{1,19}$',
          description:
            'Data version that the response must have: `Data-Version` of the first page. If the ' +
            'data has changed since, the response is 412. Not together with `since`.',
        }),
      ),
    },
    { additionalProperties: false },
  )
}
export type PageQuery = Static<ReturnType<typeof PageQuery>>

/** Parameters that choose a page, the changes or a version. The others select rows by their fields. */
const NO_FILTERS = ['limit', 'page', 'since', 'version'] as const

/** The parameters that select rows by their fields. Links, exports and ETags depend on all of them. */
export type Filters = {
  [Name in Exclude<keyof PageQuery, (typeof NO_FILTERS)[number]>]?: PageQuery[Name] | undefined
}

const FILTERS = Object.keys(PageQuery(DEFAULT_LIMIT).properties).filter(
  (name) => !(NO_FILTERS as readonly string[]).includes(name),
) as (keyof Filters)[]

/** Returns every filter of a query, in the order of the schema; undefined if the query does not have it. */
export function filtersOf(query: Filters): Filters {
  const filters: Filters = {}
  for (const name of FILTERS) filters[name] = query[name]
  return filters
}

/** True if a query selects rows by any filter: their total is not that of the connection. */
export function hasFilter(query: Filters): boolean {
  return FILTERS.some((name) => query[name] !== undefined)
}

/** What a request asks for. Some parameters apply to pages only. */
export type QueryPurpose = 'page' | 'changes' | 'export'

/** Query of a list without parameters. */
export const NoQuery = Type.Object({}, { additionalProperties: false })
