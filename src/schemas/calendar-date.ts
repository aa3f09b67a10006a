import { type Static, Type } from '@sinclair/typebox'

// Spelled out without a look-ahead, which half of the regular expression engines lack.
const YEAR = '(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)'
const MONTH = '(?:0[1-9]|1[0-2])'
const DAY = '(?:0[1-9]|[12][0-9]|3[01])'

/**
 * A day of the calendar, years 0001 to 9999 (contract item 3). The pattern holds the form and the
 * range of the year; the format `date` holds that the day exists. No time zone is attached to it.
 */
export const CalendarDate = Type.String({
  format: 'date',
  pattern: `^${YEAR}-${MONTH}-${DAY}$`,
  title: 'Date',
  description: 'A day that exists, as YYYY-MM-DD, in the years 0001 to 9999; it has no time zone.',
  examples: ['2025-03-14'],
})
export type CalendarDate = Static<typeof CalendarDate>
