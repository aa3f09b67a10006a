import { type Static, Type } from '@sinclair/typebox'
import { CalendarDate } from './calendar-date.ts'
import { Described } from './described.ts'
import { EFFECTIVE_DATE } from './transaction-dates.ts'

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
