import { CopyWriter } from './copy-writer.ts'
import type { Field, Fields, Kind } from './import-types.ts'
import type { Value } from './json-scanner.ts'
import { JsonScanner, NotJson } from './json-scanner.ts'
import { suggestion } from './rules.ts'

/** Is told of a fault of the row that is being read, and of the field where one is at fault. */
export type ReportFault = (reason: string, field?: string) => void

/** Reads the lines of an import and writes them down for COPY, one at a time. */
export class RowReader {
  readonly #kind: Kind
  readonly #report: ReportFault
  readonly #scanner = new JsonScanner()
  readonly #row: CopyWriter
  /** By the column of a field: 1 where a row had it, were it as null. */
  readonly #had: Uint8Array
  #faults = 0

  constructor(kind: Kind, report: ReportFault) {
    this.#kind = kind
    this.#row = new CopyWriter(kind.columns.length)
    this.#had = new Uint8Array(kind.columns.length)
    this.#report = (reason, field) => {
      this.#faults += 1
      report(reason, field)
    }
  }

  /**
   * Checks a line of UTF-8 against the rules of the kind, and reports every fault that it finds. A
   * sound row is written down with the number of its line.
   * @returns whether there was one: not where the line is blank or at fault
   */
  read(block: Buffer, start: number, line: number): boolean {
    this.#faults = 0
    this.#row.begin()
    this.#scanner.start(block, start)
    if (this.#scanner.atEnd()) return false
    try {
      this.#object()
    } catch (error) {
      if (!(error instanceof NotJson)) throw error
      this.#report(`not valid JSON: ${error.message}`)
    }
    if (this.#faults > 0) return false
    this.#row.end(block, line)
    return true
  }

  /** The rows since this was called last, in the text format of COPY. */
  takeCopyText(): Buffer {
    return this.#row.take()
  }

  /** The fields that were left out of every row so far, and so became null. */
  leftOut(): string[] {
    const { inOrder } = this.#kind.fields
    return inOrder
      .filter(({ absent, column }) => absent === null && this.#had[column] === 0)
      .map(({ path }) => path)
  }

  #object(): void {
    const { fields, noun, oneOf } = this.#kind
    if (this.#scanner.readValue().kind !== 'object') {
      this.#report(`a JSON object is expected on each line: one ${noun}`)
    } else if (this.#members(fields)) {
      this.#scanner.expectEnd()
      this.#fillAbsent(fields)
      if (oneOf.length > 0 && oneOf.every(({ column }) => this.#row.isNull(column))) {
        const names = oneOf.map(({ path }) => path).join(' or ')
        this.#report(`${names} must be known`)
      }
    }
  }

  /** @returns whether the scanner stands behind the object, so that reading can go on */
  #members(fields: Fields): boolean {
    if (this.#scanner.isEmptyObject()) return true
    let next = 0
    do {
      const field = this.#name(fields, next)
      if (field ? !this.#value(field) : isOpen(this.#scanner.readValue())) return false
      if (field) next = field.position + 1
    } while (this.#scanner.hasMoreMembers())
    return true
  }

  /** Most files have the fields in one order; comparing with the next is faster than looking it up. */
  #name(fields: Fields, next: number): Field | undefined {
    const likely = fields.inOrder[next]
    if (likely && this.#scanner.takeName(likely.quotedName)) return likely
    const name = this.#scanner.readName()
    const field = fields.byName.get(name)
    if (!field) {
      const shown = /^\w{1,60}$/.test(name) ? name : JSON.stringify(name.slice(0, 60))
      this.#report(
        `there is no such field; the closest is ${suggestion(name, fields.byName.keys())}`,
        fields.prefix + shown,
      )
    }
    return field
  }

  #value(field: Field): boolean {
    if (this.#row.isTold(field.column)) this.#report('the field appears twice', field.path)
    this.#had[field.column] = 1
    const value = this.#scanner.readValue()
    if (value.kind === 'null') return this.#null(field)
    if (value.kind === 'object' && field.members) return this.#group(field.members)
    if (!field.rule.accepts(value)) this.#report(field.rule.explain(value), field.path)
    this.#row.set(field.column, value)
    return !isOpen(value)
  }

  #null(field: Field): true {
    if (!field.nullable) this.#report('null is not allowed here', field.path)
    this.#setNull(field)
    return true
  }

  #group(members: Fields): boolean {
    const isRead = this.#members(members)
    if (isRead) this.#fillAbsent(members)
    return isRead
  }

  #fillAbsent(fields: Fields): void {
    for (const field of fields.inOrder) {
      if (this.#row.isTold(field.column)) continue
      if (field.absent === undefined) this.#report('the field is missing', field.path)
      else if (field.absent === null) this.#setNull(field)
      else this.#row.setText(field.column, field.absent)
    }
  }

  #setNull({ column, members }: Field): void {
    this.#row.setNull(column)
    for (const member of members?.inOrder ?? []) this.#row.setNull(member.column)
  }
}

/** Whether the scanner stands within the value, and does not know where it ends. */
function isOpen({ kind }: Value): boolean {
  return kind === 'object' || kind === 'array'
}
