import { SHOWN_PROBLEMS } from '../errors.ts'
import { describe, JsonScanner, NotJson, textOf } from './json-scanner.ts'
import type { DateRange, Replacement } from './merge.ts'
import { outsideOf, RowReader } from './row-reader.ts'
import { type List, type RowType, rowTypes } from './row-types.ts'
import { isDay, suggestion } from './rules.ts'

/** A problem of a line. */
export interface RefreshProblem {
  list?: List
  /** Number of the row in its list, from 1. */
  row?: number
  field?: string
  detail: string
}

/** Rows of one list. */
export interface ListRows {
  type: RowType
  /** JSON of each row, as in the line. */
  rows: string[]
}

/** A line: the refresh of one connection. */
export interface Refresh {
  connection: string | undefined
  lists: ListRows[]
  replace: Replacement | undefined
  /** The first problems, at most SHOWN_PROBLEMS. */
  errors: RefreshProblem[]
}

const types = new Map<string, RowType>(Object.values(rowTypes).map((type) => [type.list, type]))
const MEMBERS = ['connection', ...types.keys(), 'replace']

/** Reads the lines of a refresh with the checks of the import. */
export class RefreshReader {
  readonly #scanner = new JsonScanner()
  readonly #readers = new Map<RowType, RowReader>()
  #errors: RefreshProblem[] = []
  /** List and row of the row that is read. */
  #place: { list?: List; row?: number } = {}

  constructor() {
    for (const type of types.values()) {
      const report = (detail: string, field?: string) => this.#report(detail, field)
      this.#readers.set(type, new RowReader(type, report, this.#scanner))
    }
  }

  /** Validates a line of UTF-8 with its line break. @returns undefined for a blank line */
  read(line: Buffer): Refresh | undefined {
    const refresh: Refresh = { connection: undefined, lists: [], replace: undefined, errors: [] }
    this.#errors = refresh.errors
    this.#place = {}
    this.#scanner.start(line, 0)
    if (this.#scanner.atEnd()) return undefined
    try {
      this.#readLine(line, refresh)
    } catch (error) {
      if (!(error instanceof NotJson)) throw error
      this.#place = {}
      this.#report(`not valid JSON: ${error.message}`)
    }
    return refresh
  }

  #report(detail: string, field?: string): void {
    if (this.#errors.length === SHOWN_PROBLEMS) return
    this.#errors.push({ ...this.#place, ...(field && { field }), detail })
  }

  #readLine(line: Buffer, refresh: Refresh): void {
    const scanner = this.#scanner
    if (scanner.readValue().type !== 'object') {
      this.#report('a JSON object is expected: the refresh of a connection')
      return
    }
    const seen = new Set<string>()
    const days: [ListRows, string[]][] = []
    for (let more = !scanner.isEmptyObject(); more; more = scanner.hasMoreMembers()) {
      const name = scanner.readName()
      if (seen.has(name)) this.#report('the field appears twice', name)
      seen.add(name)
      const type = types.get(name)
      if (type) {
        const list = this.#readList(line, type, days)
        if (list === undefined) return
        refresh.lists.push(list)
      } else if (name === 'replace') {
        if (!this.#readReplace(refresh)) return
      } else if (!this.#readConnection(refresh, name)) return
    }
    scanner.expectEnd()
    if (!seen.has('connection')) this.#report('the field is missing', 'connection')
    this.#requireInRange(days, refresh.replace ?? {})
  }

  /** @returns false if the value keeps the scanner from reading on */
  #readConnection(refresh: Refresh, name: string): boolean {
    const value = this.#scanner.readValue()
    if (name !== 'connection') {
      this.#report(`there is no such field${suggestion(name, MEMBERS)}`, name.slice(0, 60))
    } else if (value.type === 'string' && value.end > value.start) {
      refresh.connection = textOf(value)
    } else {
      this.#report(`the id of a connection is expected, in quotes, not ${describe(value)}`, name)
    }
    return value.type !== 'object' && value.type !== 'array'
  }

  #readReplace(refresh: Refresh): boolean {
    const scanner = this.#scanner
    const value = scanner.readValue()
    if (value.type === 'null') return true
    if (value.type !== 'object') {
      this.#report(`an object is expected, not ${describe(value)}`, 'replace')
      return value.type !== 'array'
    }
    const replace: Replacement = {}
    for (let more = !scanner.isEmptyObject(); more; more = scanner.hasMoreMembers()) {
      const name = scanner.readName()
      const { type, bytes, start, end } = scanner.readValue()
      if (type === 'object' || type === 'array') {
        this.#report(`a value is expected, not an ${type}`, `replace.${name}`)
        return false
      }
      const text = bytes.toString('utf8', start, end)
      const isBound = name === 'from' || name === 'to'
      if (isBound && type === 'string' && isDay(bytes, start, end)) replace[name] = text
      else if (isBound && type !== 'null')
        this.#report('an existing day is expected, as YYYY-MM-DD', `replace.${name}`)
      else if (name === 'yes' && type === 'boolean') replace.yes = text === 'true'
      else if (!isBound) this.#report('from, to or yes is expected', `replace.${name}`)
    }
    if (replace.from && replace.to && replace.from > replace.to)
      this.#report('from must not be after to', 'replace')
    refresh.replace = replace
    return true
  }

  /** @returns undefined if a row keeps the scanner from reading on */
  #readList(line: Buffer, type: RowType, days: [ListRows, string[]][]): ListRows | undefined {
    const [scanner, reader] = [this.#scanner, this.#readers.get(type)]
    const value = scanner.readValue()
    if (value.type !== 'array' || !reader) {
      this.#report(`an array is expected, not ${describe(value)}`, type.list)
      return value.type === 'object' ? undefined : { type, rows: [] }
    }
    const found: ListRows = { type, rows: [] }
    const ids = new Map<string, number>()
    const own: string[] = []
    days.push([found, own])
    for (let more = !scanner.isEmptyArray(); more; more = scanner.hasMoreElements()) {
      const row = found.rows.length + 1
      this.#place = { list: type.list, row }
      const { position } = scanner
      const before = this.#errors.length
      if (!reader.readRow()) return undefined
      found.rows.push(reader.jsonOf(line, position, scanner.position))
      const isValid = this.#errors.length === before
      own.push(isValid ? reader.dayOf(line) : '')
      const id = isValid ? reader.idOf(line) : `invalid ${row}`
      const first = ids.get(id)
      if (first !== undefined) this.#report(`duplicate of row ${first}`, type.key.field)
      else ids.set(id, row)
    }
    this.#place = {}
    return found
  }

  #requireInRange(days: [ListRows, string[]][], range: DateRange): void {
    for (const [{ type }, own] of days)
      for (const [index, day] of own.entries()) {
        const problem = day === '' ? undefined : outsideOf(range, day)
        this.#place = { list: type.list, row: index + 1 }
        if (problem) this.#report(problem)
      }
  }
}
