import { SHOWN_PROBLEMS } from '../errors.ts'
import type { DateRange } from './merge.ts'
import { type Field, type Fields, type List, type RowType, rowTypes } from './row-types.ts'
import { Digits, suggestion, visible } from './rules.ts'

/** Values of the columns of a row, as PostgreSQL reads them. */
export type Row = (string | null)[]

/** Place of a problem in an import, or in a line of a refresh. */
interface Place {
  /** Number of the line in all files together, from 1. */
  line?: number
  list?: List
  /** Number of the row in its list, from 1. */
  row?: number
}

export interface Problem extends Place {
  field?: string
  detail: string
}

/** Receives the problems of an input. */
export interface Report {
  /** Place of the next problems. */
  place: Place
  total: number
  /** True if further problems are only counted, so that nobody reads their explanation. */
  readonly isFull: boolean
  add(detail: string, field?: string): void
}

/** Counts the problems of an input, and keeps the first ones. */
export class Problems implements Report {
  readonly shown: Problem[] = []
  total = 0
  place: Place = {}

  get isFull(): boolean {
    return this.shown.length >= SHOWN_PROBLEMS
  }

  add(detail: string, field?: string): void {
    this.total += 1
    if (!this.isFull) this.shown.push({ ...this.place, ...(field && { field }), detail })
  }
}

/** Decimals of all types have the same names, so that one expression finds them in a line. */
const decimals = namesOf((sqlType) => sqlType === 'numeric')
const others = namesOf((sqlType) => sqlType !== 'numeric')
if (!decimals.isDisjointFrom(others)) throw new Error('a field is a decimal in one list only')

function namesOf(has: (sqlType: string) => boolean): Set<string> {
  const scalars = Object.values(rowTypes).flatMap(({ fields, columns }) =>
    fields.inOrder
      .flatMap((field) => field.members?.inOrder ?? field)
      .filter(({ index }) => has(columns[index]?.sqlType ?? '')),
  )
  return new Set(scalars.map(({ name }) => name))
}

/**
 * A decimal without an exponent, and its name. A name in a text has a backslash before its quote. The end must be a
 * comma or a bracket, so that 01 or 1.2.3 stays invalid JSON.
 */
const DECIMAL = new RegExp(
  `("(?:${[...decimals].join('|')})"\\s*:\\s*)(-?(?:0|[1-9]\\d*)(?:\\.\\d+)?)(?=\\s*[,}])`,
  'g',
)

const AGAIN = new Error('the line is read again')
const STRICT: Report = {
  place: {},
  total: 0,
  isFull: true,
  add() {
    throw AGAIN
  },
}

/**
 * Reads a line of JSON with all digits of its numbers. First puts its decimals in quotes, which JSON.parse then keeps:
 * a third of the time of a reviver. A line with a problem, or with a number in another notation, is read again.
 * @param read has no effects, because it may run twice
 */
export function readJson<T>(
  line: string,
  report: Report,
  read: (value: unknown, report: Report) => T,
): T | undefined {
  try {
    return read(JSON.parse(line.replace(DECIMAL, '$1"$2"')), STRICT)
  } catch (error) {
    if (error !== AGAIN && !(error instanceof SyntaxError)) throw error
  }
  let value: unknown
  try {
    value = JSON.parse(line, (_name, value, { source = '' }) =>
      typeof value === 'number' ? new Digits(source) : value,
    )
  } catch (error) {
    report.add(`not valid JSON: ${jsonProblem(line, error as Error)}`)
    return undefined
  }
  return read(value, report)
}

/** Problem of a line that ends as in files of old Macintosh systems. */
export const CR_ALONE = 'a line must end with LF or CRLF, not with CR alone'

export function jsonProblem(line: string, { name, message }: Error): string {
  if (name === 'RangeError') return 'its values are nested too deeply'
  if (line.trimEnd().includes('\r')) return CR_ALONE
  return visible(message.replace(/ \(line \d+ column \d+\)$/, ''))
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Digits)
  )
}

/** Reports the members of an object that have other names. */
export function reportUnknown(
  object: object,
  known: { has(name: string): boolean; keys(): Iterable<string> },
  report: Report,
  prefix = '',
): void {
  for (const name of Object.keys(object)) {
    if (known.has(name)) continue
    const shown = /^\w{1,60}$/.test(name) ? name : visible(JSON.stringify(name.slice(0, 60)))
    const similar = report.isFull ? '' : suggestion(name, known.keys())
    report.add(`there is no such field${similar}`, prefix + shown)
  }
}

/** Checks the rows of a type. */
export class RowReader {
  readonly #type: RowType
  /** By the column of a field: true if any row had the field, null included. */
  readonly #present: boolean[] = []

  constructor(type: RowType) {
    this.#type = type
  }

  /**
   * Checks a row, and reports all its problems.
   * @param range effective dates that the row may have
   * @returns undefined if it has a problem
   */
  read(value: unknown, report: Report, range: DateRange): Row | undefined {
    const { fields, columns, noun, oneOf } = this.#type
    if (!isObject(value)) {
      report.add(`a JSON object is expected: one ${noun}`)
      return undefined
    }
    const before = report.total
    const row = new Array<string | null>(columns.length).fill(null)
    this.#readMembers(fields, value, row, report)
    if (oneOf.length > 0 && oneOf.every(({ index }) => row[index] === null))
      report.add(`${oneOf.map(({ path }) => path).join(' or ')} must have a value`)
    if (report.total > before) return undefined
    const problem = outsideOf(range, this.#dayOf(row))
    if (problem === undefined) return row
    report.add(problem)
    return undefined
  }

  /** Fields that no row had so far. They are null in all rows. */
  leftOut(): string[] {
    return this.#type.fields.inOrder
      .filter(({ absent, index }) => absent === null && !this.#present[index])
      .map(({ path }) => path)
  }

  #readMembers(fields: Fields, object: Record<string, unknown>, row: Row, report: Report): void {
    let found = 0
    for (const field of fields.inOrder) {
      const value = object[field.name]
      if (value !== undefined) {
        found += 1
        this.#present[field.index] = true
        this.#readValue(field, value, row, report)
      } else if (field.absent === undefined) report.add('the field is missing', field.path)
      else if (!field.members) row[field.index] = field.absent
    }
    if (Object.keys(object).length > found)
      reportUnknown(object, fields.byName, report, fields.prefix)
  }

  #readValue(field: Field, value: unknown, row: Row, report: Report): void {
    const { path, index, rule, values, members, nullable } = field
    if (value === null) {
      if (!nullable) report.add('null is not allowed here', path)
    } else if (members && isObject(value)) this.#readMembers(members, value, row, report)
    else {
      const problem = rule(value)
      if (problem !== undefined) {
        const similar =
          values && typeof value === 'string' && !report.isFull ? suggestion(value, values) : ''
        report.add(problem + similar, path)
      }
      row[index] = value instanceof Digits ? value.text : String(value)
    }
  }

  /** Returns the effective date; empty for an order. */
  #dayOf(row: Row): string {
    const field = this.#type.oneOf.find(({ index }) => row[index] !== null)
    return (field && row[field.index]) ?? ''
  }
}

/** Returns the problem of an effective date outside of the range that the input replaces. */
function outsideOf({ from = '', to = '' }: DateRange, day: string): string | undefined {
  if (day === '' || (day >= from && (to === '' || day <= to))) return undefined
  const range = `${from || '…'} to ${to || '…'}`
  return `the effective date ${day} is outside of the replaced range, ${range}`
}
