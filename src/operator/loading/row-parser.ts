import { isObject } from './json.ts'
import type { Replacement } from './merge.ts'
import type { Problems } from './problems.ts'
import type { Field, Fields, RowType } from './row-types.ts'
import { hour, NUMBER, suggestion, visible } from './rules.ts'

/** Values of the columns of a row, as PostgreSQL reads them. */
export type Row = (string | null)[]

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

export type RowParser = ReturnType<typeof rowParser>

/** Parses the rows of a type, and reports all their problems. @param range effective dates that rows may have */
export function rowParser(type: RowType, problems: Problems, { from, to }: Replacement = {}) {
  const { fields, columns, noun, dates, hours } = type
  /** By the column of a field: true if any row had the field, null included. */
  const present: boolean[] = []
  let hasOddHour = false

  function parseMembers(members: Fields, object: Record<string, unknown>, row: Row, prefix = '') {
    let found = 0
    for (const [name, field] of members) {
      const value = object[name]
      if (value !== undefined) {
        found += 1
        present[field.index] = true
        parseValue(field, value, row)
      } else if (field.absent === undefined) problems.add('the field is missing', field.path)
      else if (!field.members) row[field.index] = field.absent
    }
    if (Object.keys(object).length > found) reportUnknown(object, members, problems, prefix)
  }

  function parseValue({ path, index, rule, members, nullable }: Field, value: unknown, row: Row) {
    if (value === null) {
      if (!nullable) problems.add('null is not allowed here', path)
    } else if (members && isObject(value)) parseMembers(members, value, row, `${path}.`)
    else {
      const problem = rule(value)
      if (problem !== undefined) problems.add(problem, path)
      // Not null: a wrong date would then be reported as missing, too.
      const text = problem ? '' : String(value)
      row[index] = text.startsWith(NUMBER) ? text.slice(1) : text
    }
  }

  /** Returns undefined for a row with a problem. */
  function parse(value: unknown): Row | undefined {
    if (!isObject(value)) return problems.add(`a JSON object is expected: one ${noun}`)
    const before = problems.total
    const row = new Array<string | null>(columns.length).fill(null)
    parseMembers(fields, value, row)
    const date = dates.find(({ index }) => row[index] !== null)
    if (dates.length > 0 && date === undefined)
      problems.add(`${dates.map(({ path }) => path).join(' or ')} must have a value`)
    if (problems.total > before) return undefined
    hasOddHour ||= hours.some(({ index }) => row[index] !== null && hour(row[index]) !== undefined)
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

  return {
    type,
    problems,
    parse,
    leftOut,
    /** True if any row so far has an hour that only a stored row may have. */
    get hasOddHour() {
      return hasOddHour
    },
  }
}
