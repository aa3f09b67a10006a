import { SHOWN_PROBLEMS } from '../errors.ts'
import type { Replacement } from './merge.ts'
import { type Field, type Fields, type List, type RowType, rowTypes } from './row-types.ts'
import { NUMBER, suggestion, visible } from './rules.ts'
import type { Line } from './source.ts'

/** Values of the columns of a row, as PostgreSQL reads them. */
export type Row = (string | null)[]

interface Problem {
  /** In an import: number of the line in all files together, from 1. */
  line?: number
  /** In a refresh: list of the line, and number of the row in it, from 1. */
  list?: List
  row?: number
  field?: string
  detail: string
}

/** Counts the problems of an input, and keeps the first ones. */
export class Problems {
  readonly shown: Problem[] = []
  total = 0
  place: Omit<Problem, 'field' | 'detail'> = {}

  get isFull(): boolean {
    return this.shown.length >= SHOWN_PROBLEMS
  }

  add(detail: string, field?: string): undefined {
    this.total += 1
    if (!this.isFull) this.shown.push({ ...this.place, ...(field && { field }), detail })
  }
}

const columns = Object.values(rowTypes).flatMap((type) => type.columns)
const decimals = columns.filter(({ sqlType }) => sqlType === 'numeric')
/** The id of a connection is no number, but the message has its digits. */
const NUMBERS = new Set(['connection', ...decimals.map(({ member }) => member)])

/** A decimal and its name. The end must be a comma or a bracket, so that 01 or 1.2.3 stays invalid JSON. */
const DECIMAL = new RegExp(
  `("(?:${[...NUMBERS].join('|')})"\\s*:\\s*)` +
    '(-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][-+]?\\d+)?)(?=\\s*[,}])',
  'g',
)

/** Matches each string, with the colon after a name, and the escape of a letter in a name. */
const STRING = /"(?:[^"\\]|\\.)*"(\s*:)?/g
const ESCAPED_LETTER = /\\u00[4-7]/

/** Reads a line of JSON. A decimal is a text with all its digits, after NUMBER. */
export function readJson(
  { text, problem }: Pick<Line, 'text' | 'problem'>,
  problems: Problems,
): unknown {
  if (problem !== undefined) return problems.add(problem)
  try {
    const line =
      text.includes('\\u00') && ESCAPED_LETTER.test(text)
        ? text.replace(STRING, (string, colon?: string) =>
            colon ? JSON.stringify(JSON.parse(string.slice(0, -colon.length))) + colon : string,
          )
        : text
    return JSON.parse(line.replace(DECIMAL, '$1"\\u0000$2"'))
  } catch {
    // A wrong file may have millions of lines.
    return problems.add(problems.isFull ? '' : `not valid JSON: ${visible(syntaxError(text))}`)
  }
}

function syntaxError(text: string): string {
  try {
    JSON.parse(text)
    return ''
  } catch (error) {
    return (error as SyntaxError).message.replace(/ \(line \d+ column \d+\)$/, '')
  }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reports the members of an object that have other names. */
export function reportUnknown(
  object: object,
  known: ReadonlySet<string> | ReadonlyMap<string, unknown>,
  problems: Problems,
  prefix = '',
): void {
  for (const name of Object.keys(object)) {
    if (known.has(name)) continue
    const shown = /^\w{1,60}$/.test(name) ? name : visible(JSON.stringify(name.slice(0, 60)))
    // A hostile row may have thousands of names.
    const advice = problems.isFull ? '' : suggestion(name, known.keys())
    problems.add(`there is no such field${advice}`, prefix + shown)
  }
}

export type RowReader = ReturnType<typeof rowReader>

/** Checks the rows of a type, and reports all their problems. @param range effective dates that rows may have */
export function rowReader(type: RowType, problems: Problems, { from, to }: Replacement = {}) {
  const { fields, columns, noun, dates } = type
  /** By the column of a field: true if any row had the field, null included. */
  const present: boolean[] = []

  function readMembers(members: Fields, object: Record<string, unknown>, row: Row, prefix = '') {
    let found = 0
    for (const [name, field] of members) {
      const value = object[name]
      if (value !== undefined) {
        found += 1
        present[field.index] = true
        readValue(field, value, row)
      } else if (field.absent === undefined) problems.add('the field is missing', field.path)
      else if (!field.members) row[field.index] = field.absent
    }
    if (Object.keys(object).length > found) reportUnknown(object, members, problems, prefix)
  }

  function readValue({ path, index, rule, members, nullable }: Field, value: unknown, row: Row) {
    if (value === null) {
      if (!nullable) problems.add('null is not allowed here', path)
    } else if (members && isObject(value)) readMembers(members, value, row, `${path}.`)
    else {
      const problem = rule(value)
      if (problem !== undefined) problems.add(problem, path)
      // Not null: a wrong date would then be reported as missing, too.
      const text = problem ? '' : String(value)
      row[index] = text.startsWith(NUMBER) ? text.slice(1) : text
    }
  }

  /** Returns undefined for a row with a problem. */
  function read(value: unknown): Row | undefined {
    if (!isObject(value)) return problems.add(`a JSON object is expected: one ${noun}`)
    const before = problems.total
    const row = new Array<string | null>(columns.length).fill(null)
    readMembers(fields, value, row)
    const date = dates.find(({ index }) => row[index] !== null)
    if (dates.length > 0 && date === undefined)
      problems.add(`${dates.map(({ path }) => path).join(' or ')} must have a value`)
    if (problems.total > before) return undefined
    const day = date && row[date.index]
    if (!day || ((!from || day >= from) && (!to || day <= to))) return row
    return problems.add(
      `the effective date ${day} is outside of the replaced range, ${from ?? '…'} to ${to ?? '…'}`,
    )
  }

  /** Fields that no row had so far. They are null in all rows. */
  const leftOut = () =>
    [...fields.values()]
      .filter(({ absent, index }) => absent === null && !present[index])
      .map(({ path }) => path)

  return { type, problems, read, leftOut }
}
