import type { TSchema } from '@sinclair/typebox'
import { DECIMAL_FRACTION_DIGITS } from '../../schemas/decimal.ts'
import { closest } from '../closest.ts'
import { isDay, isMoment } from './day.ts'
import { decimalFault, plainDecimal } from './decimal.ts'
import { shown, textOf, type Value } from './json-value.ts'
import { textFault } from './text.ts'
import { isUuid } from './uuid.ts'

/** What a column takes; null is not its concern. */
export interface Rule {
  /** Whether the value may stand. It may give the value a `text`, to be stored in its place. */
  accepts(value: Value): boolean
  /** Why a value that was not accepted may not stand. */
  explain(value: Value): string
}

/** The rule of a scalar in a response schema. */
export function ruleOf(schema: TSchema): Rule {
  if (schema.enum) return closedList(schema.enum)
  if (schema.format === 'uuid') return uuid
  if (schema.format === 'date') return day
  if (schema.format === 'decimal') return decimal
  if (schema.format === 'date-time') return moment
  if ([schema.type].flat().includes('boolean')) return boolean
  if (schema.maxLength !== undefined) return text(schema.maxLength)
  throw new Error(`no import rule for ${JSON.stringify(schema)}`)
}

/** An object is read member by member, so that as a value of its own it never fits. */
export function groupOf(names: string[]): Rule {
  return {
    accepts: () => false,
    explain: (value) => `an object with ${names.join(' and ')} is expected, not ${shown(value)}`,
  }
}

const uuid: Rule = {
  accepts: ({ kind, bytes, start, end }) => kind === 'string' && isUuid(bytes, start, end),
  explain: (value) => `a UUID is expected, not ${shown(value)}`,
}

const day: Rule = {
  accepts: ({ kind, bytes, start, end }) => kind === 'string' && isDay(bytes, start, end),
  explain: (value) => `a day that exists is expected, as YYYY-MM-DD, not ${shown(value)}`,
}

const moment: Rule = {
  accepts: (value) => value.kind === 'string' && isMoment(textOf(value)),
  explain: (value) =>
    `a time with its offset is expected, as 2025-03-14T09:30:00Z, not ${shown(value)}`,
}

const decimal: Rule = {
  accepts: (value) => {
    if (value.kind !== 'number') return false
    // So few digits, and no exponent, break no limit: almost every number there is.
    if (value.text === undefined && value.end - value.start <= DECIMAL_FRACTION_DIGITS) return true
    value.text = plainDecimal(textOf(value))
    return value.text !== undefined
  },
  explain: (value) =>
    value.kind === 'number'
      ? `${shown(value)} ${decimalFault(textOf(value))}`
      : `a number is expected, not ${shown(value)}`,
}

const boolean: Rule = {
  accepts: ({ kind }) => kind === 'boolean',
  explain: (value) => `true or false is expected, not ${shown(value)}`,
}

function text(maxLength: number): Rule {
  return {
    accepts: (value) => value.kind === 'string' && textFault(value, maxLength) === undefined,
    explain: (value) =>
      value.kind === 'string'
        ? `${textFault(value, maxLength)}`
        : `a text is expected, not ${shown(value)}`,
  }
}

function closedList(values: string[]): Rule {
  const known = new Set(values)
  return {
    accepts: (value) => value.kind === 'string' && known.has(textOf(value)),
    explain: (value) =>
      value.kind === 'string'
        ? `${shown(value)} is not in the list; the closest is ${closest(textOf(value), values)}`
        : `a word of the list is expected, not ${shown(value)}`,
  }
}
