import { type Static, type TSchema, Type } from '@sinclair/typebox'
import {
  CalendarDate,
  Component,
  Described,
  EFFECTIVE_DATE,
  type Named,
  Reference,
} from './fields.ts'

/**
 * The path parameter that selects the connection (sections 4 and 5). Any string is let through: a
 * token of a wrong form must look like one that does not exist (contract item 18).
 */
export const ConnectionParams = Type.Object(
  {
    token: Type.String({
      title: 'Connection token',
      description:
        'Selects the connection. It is a credential of its own, beside the app token: keep it ' +
        'out of logs and of links that others see. A token that is unknown, or belongs to ' +
        'another app, gets the same 404.',
      examples: ['DEMOSMALL1'],
    }),
  },
  { additionalProperties: false, title: 'Connection' },
)
export type ConnectionParams = Static<typeof ConnectionParams>

/** Rows of a page when the request does not say (section 8). */
export const DEFAULT_LIMIT = 1000

/** The page when the request does not say: the first (section 8). */
export const DEFAULT_PAGE = 0

/** The last page that can be asked for (contract item 2): the largest 32-bit integer. */
export const MAXIMUM_PAGE = 2_147_483_647

/** Digits only: no sign, blank, point or exponent. The range is checked on the number. */
const DIGITS = '^[0-9]+$'

/**
 * The query parameters of the two paged lists (sections 4.1 and 4.2), as strings, which is what
 * they are on the wire. The largest page is the operator's to set. A parameter that is not listed
 * is refused, because dropping a misspelt filter would widen the result in silence.
 */
export function ListQuery(maximumLimit: number) {
  return Type.Object(
    {
      from: Type.Optional(
        Described(CalendarDate, {
          title: 'From',
          description:
            `First day of the result, inclusive, as YYYY-MM-DD. It is compared with ` +
            `${EFFECTIVE_DATE}. Without it the result begins with the oldest row.`,
          examples: ['2025-01-01'],
        }),
      ),
      to: Type.Optional(
        Described(CalendarDate, {
          title: 'To',
          description:
            'Last day of the result, inclusive, as YYYY-MM-DD; not before `from`. It is compared ' +
            'with the same date as `from`. Without it the result ends with the newest row.',
          examples: ['2025-03-31'],
        }),
      ),
      limit: Type.Optional(
        Type.String({
          pattern: DIGITS,
          default: String(DEFAULT_LIMIT),
          title: 'Limit',
          description:
            `Rows of a page, 1 to ${maximumLimit}, in digits. More is refused with 400 rather ` +
            'than cut down, which would make rows go missing.',
          examples: ['100'],
        }),
      ),
      page: Type.Optional(
        Type.String({
          pattern: DIGITS,
          default: String(DEFAULT_PAGE),
          title: 'Page',
          description:
            `Number of the page, 0 to ${MAXIMUM_PAGE}, in digits; the first page is 0. A page ` +
            'past the last one is empty and still tells `totalItems`.',
          examples: ['0'],
        }),
      ),
    },
    { additionalProperties: false, title: 'List query' },
  )
}
export type ListQuery = Static<ReturnType<typeof ListQuery>>

interface ListAnnotations {
  name: string
  title: string
  description: string
}

/**
 * The envelope of a paged list (section 2.1) around items of one kind. `limit` and `page` are the
 * values applied; `totalItems` counts what the filter lets through, whatever the page, in the same
 * snapshot that the items come from (contract item 9).
 */
export function ListEnvelope<Item extends TSchema>(
  item: Named<Item>,
  { name, title, description }: ListAnnotations,
) {
  return Component(
    name,
    Type.Object(
      {
        items: Type.Array(Reference(item), {
          title: 'Items',
          description:
            `The rows of this page, newest first by ${EFFECTIVE_DATE}, then by ` +
            '`operationDateHour` (null last), then by identifier, all descending. Empty past the ' +
            'last page.',
        }),
        limit: Type.Integer({
          minimum: 1,
          title: 'Limit',
          description: 'Rows that a page holds at most: the value that was applied.',
          examples: [DEFAULT_LIMIT],
        }),
        page: Type.Integer({
          minimum: 0,
          maximum: MAXIMUM_PAGE,
          title: 'Page',
          description: 'Number of this page, the first is 0: the value that was applied.',
          examples: [0],
        }),
        totalItems: Type.Integer({
          minimum: 0,
          title: 'Total of items',
          description:
            'Exact number of rows between `from` and `to`, on all pages, counted in the same ' +
            'snapshot that the items come from.',
          examples: [5213],
        }),
      },
      { additionalProperties: false, title, description },
    ),
  )
}

/** A page of any kind of row. */
export type ListEnvelope<Item extends TSchema> = Static<ReturnType<typeof ListEnvelope<Item>>>
