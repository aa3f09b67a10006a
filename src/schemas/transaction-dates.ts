import { CalendarDate } from './calendar-date.ts'
import { Nullable } from './nullable.ts'
import { ShortText } from './text.ts'

/** The day that lists filter and sort by (contract items 4 and 8), in words for descriptions. */
export const EFFECTIVE_DATE =
  'the effective date (`operationDateDay`, or `valueDateDay` where there is no operation date)'

const hourRule = 'By convention HH:mm:ss; whatever else the institution writes is passed through.'
const zoneRule =
  'By convention an IANA name; whatever else the institution writes is passed through.'

/**
 * When it happened and when it counted: the ten fields that portfolio and account transactions
 * share, in the order of sections 2.2 and 2.3. At least one of the two days is known.
 */
export const TransactionDates = {
  operationDateDay: Nullable(CalendarDate, {
    title: 'Operation date',
    description:
      'Day on which the transaction was made. Null only where `valueDateDay` is known. It is the ' +
      'day that lists are filtered and sorted by.',
    examples: ['2025-03-14'],
  }),
  originalOperationDateDay: Nullable(CalendarDate, {
    title: 'Operation date, as the institution states it',
    description: 'Operation date in the institution’s own time zone, `originalOperationDateTz`.',
    examples: ['2025-03-14'],
  }),
  valueDateDay: Nullable(CalendarDate, {
    title: 'Value date',
    description:
      'Day from which the transaction counts in the position or the balance. Lists are filtered ' +
      'and sorted by it where there is no operation date.',
    examples: ['2025-03-18'],
  }),
  originalValueDateDay: Nullable(CalendarDate, {
    title: 'Value date, as the institution states it',
    description: 'Value date in the institution’s own time zone, `originalValueDateTz`.',
    examples: ['2025-03-18'],
  }),
  operationDateHour: Nullable(ShortText, {
    title: 'Operation time',
    description: `Time of day on \`operationDateDay\`. ${hourRule}`,
    examples: ['15:42:07'],
  }),
  originalOperationDateHour: Nullable(ShortText, {
    title: 'Operation time, as the institution states it',
    description: `Time of day on \`originalOperationDateDay\`. ${hourRule}`,
    examples: ['16:42:07'],
  }),
  valueDateHour: Nullable(ShortText, {
    title: 'Value time',
    description: `Time of day on \`valueDateDay\`. ${hourRule}`,
    examples: ['00:00:00'],
  }),
  originalValueDateHour: Nullable(ShortText, {
    title: 'Value time, as the institution states it',
    description: `Time of day on \`originalValueDateDay\`. ${hourRule}`,
    examples: ['00:00:00'],
  }),
  originalOperationDateTz: Nullable(ShortText, {
    title: 'Time zone of the original operation date',
    description: `Time zone of the two original operation fields. ${zoneRule}`,
    examples: ['Europe/Madrid'],
  }),
  originalValueDateTz: Nullable(ShortText, {
    title: 'Time zone of the original value date',
    description: `Time zone of the two original value fields. ${zoneRule}`,
    examples: ['Europe/Madrid'],
  }),
}
