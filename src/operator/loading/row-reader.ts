import { CopyWriter } from './copy-writer.ts'
import {
  JsonScanner,
  jsonProblem,
  NotJson,
  OBJECT_END,
  requireScalar,
  UnexpectedValue,
  visible,
} from './json-scanner.ts'
import type { DateRange } from './merge.ts'
import type { Field, Fields, RowType } from './row-types.ts'
import { suggestion } from './rules.ts'

/** Receives a problem of the current row, and the path of the field if it concerns one. */
export type ReportProblem = (reason: string, field?: string) => void

/** Reads lines of JSON and writes their rows for COPY. */
export class RowReader {
  readonly #type: RowType
  readonly #report: ReportProblem
  readonly #scanner: JsonScanner
  readonly #row: CopyWriter
  /** By the column of a field: 1 if any row had the field, null included. */
  readonly #present: Uint8Array
  #problems = 0
  /** Members of the last row that it left out, with their defaults, as JSON. */
  #defaults = ''

  constructor(type: RowType, report: ReportProblem, scanner = new JsonScanner()) {
    this.#type = type
    this.#scanner = scanner
    this.#row = new CopyWriter(type.columns.length)
    this.#present = new Uint8Array(type.columns.length)
    this.#report = (reason, field) => {
      this.#problems += 1
      report(reason, field)
    }
  }

  /**
   * Validates a line of UTF-8 and reports every problem. Writes a valid row with its line number.
   * @param range effective dates that the row may have
   * @returns true for a valid row, false for a blank or invalid line
   */
  read(line: Buffer, number: number, range: DateRange): boolean {
    this.#problems = 0
    this.#scanner.start(line)
    if (this.#scanner.atEnd()) return false
    try {
      this.readRow()
      this.#scanner.expectEnd()
      const problem = this.#problems > 0 ? undefined : outsideOf(range, this.dayOf(line))
      if (problem) this.#report(problem)
    } catch (error) {
      if (error instanceof NotJson) this.#report(`not valid JSON: ${jsonProblem(line)}`)
      else if (!(error instanceof UnexpectedValue)) throw error
    }
    if (this.#problems > 0) return false
    this.#row.end(line, number)
    return true
  }

  /** Returns the rows since the last call, in the text format of COPY. */
  takeCopyText(): Buffer {
    return this.#row.take()
  }

  /** Fields that no row had so far. They are null in all rows. */
  leftOut(): string[] {
    return this.#type.fields.inOrder
      .filter(({ absent, column }) => absent === null && this.#present[column] === 0)
      .map(({ path }) => path)
  }

  /** Validates the row at the scanner. */
  readRow(): void {
    const { fields, noun, oneOf } = this.#type
    this.#row.begin()
    this.#defaults = ''
    const value = this.#scanner.readValue()
    if (value.type !== 'object') {
      this.#report(`a JSON object is expected: one ${noun}`)
      requireScalar(value)
      return
    }
    this.#readMembers(fields)
    if (oneOf.length > 0 && oneOf.every(({ column }) => this.#row.isNull(column)))
      this.#report(`${oneOf.map(({ path }) => path).join(' or ')} must have a value`)
  }

  /** Returns the id of the last row, in lower case. */
  idOf(block: Buffer): string {
    return this.#row.textOf(this.#type.key.position, block).toLowerCase()
  }

  /** Returns the JSON of the last row, which is in this range. */
  jsonOf(block: Buffer, start: number, end: number): string {
    return this.#defaults === ''
      ? block.toString('utf8', start, end)
      : `${block.toString('utf8', start, end - 1)}${this.#defaults}}`
  }

  /** Returns the effective date of the last row; empty for an order. */
  dayOf(block: Buffer): string {
    const field = this.#type.oneOf.find(({ column }) => !this.#row.isNull(column))
    return field ? this.#row.textOf(field.column, block) : ''
  }

  #readMembers(fields: Fields): void {
    let next = 0
    for (
      let more = !this.#scanner.isEmpty(OBJECT_END);
      more;
      more = this.#scanner.hasMore(OBJECT_END)
    ) {
      const field = this.#readName(fields, next)
      if (field) {
        this.#readValue(field)
        next = field.position + 1
      } else requireScalar(this.#scanner.readValue())
    }
    this.#fillAbsent(fields)
  }

  /** Most files have one order of fields. Comparing with the next name is faster than a lookup. */
  #readName(fields: Fields, next: number): Field | undefined {
    const likely = fields.inOrder[next]
    if (likely && this.#scanner.takeName(likely.quotedName)) return likely
    const name = this.#scanner.readName()
    const field = fields.byName.get(name)
    if (!field) {
      const shown = /^\w{1,60}$/.test(name) ? name : visible(JSON.stringify(name.slice(0, 60)))
      const similar = suggestion(name, fields.byName.keys())
      this.#report(`there is no such field${similar}`, fields.prefix + shown)
    }
    return field
  }

  #readValue(field: Field): void {
    if (this.#row.isSet(field.column)) this.#report('the field appears twice', field.path)
    this.#present[field.column] = 1
    const value = this.#scanner.readValue()
    if (value.type === 'null') {
      if (!field.nullable) this.#report('null is not allowed here', field.path)
      this.#setNull(field)
    } else if (value.type === 'object' && field.members) this.#readMembers(field.members)
    else {
      if (!field.rule.accepts(value)) this.#report(field.rule.explain(value), field.path)
      this.#row.set(field.column, value)
      requireScalar(value)
    }
  }

  #fillAbsent(fields: Fields): void {
    for (const field of fields.inOrder) {
      if (this.#row.isSet(field.column)) continue
      if (field.absent === undefined) this.#report('the field is missing', field.path)
      else if (field.absent === null) this.#setNull(field)
      else {
        this.#row.setText(field.column, field.absent)
        this.#defaults += `,${field.quotedName}:"${field.absent}"`
      }
    }
  }

  #setNull({ column, members }: Field): void {
    this.#row.setNull(column)
    for (const member of members?.inOrder ?? []) this.#row.setNull(member.column)
  }
}

/** Returns the problem of an effective date outside of the range that the input replaces. */
export function outsideOf({ from = '', to = '' }: DateRange, day: string): string | undefined {
  if (day >= from && (to === '' || day <= to)) return undefined
  const range = `${from || '…'} to ${to || '…'}`
  return `the effective date ${day} is outside of the replaced range, ${range}`
}
