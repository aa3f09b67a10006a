import { SHOWN_PROBLEMS } from '../errors.ts'
import {
  ARRAY_END,
  describe,
  JsonScanner,
  jsonProblem,
  NotJson,
  OBJECT_END,
  requireScalar,
  textOf,
  UnexpectedValue,
} from './json-scanner.ts'
import type { Replacement } from './merge.ts'
import { outsideOf, RowReader } from './row-reader.ts'
import { type List, type RowType, rowTypes } from './row-types.ts'
import { isDay, suggestion } from './rules.ts'

interface RefreshProblem {
  list?: List
  /** Number of the row in its list, from 1. */
  row?: number
  field?: string
  detail: string
}

export interface JsonList {
  type: RowType
  /** JSON of each row, as in the line. */
  rows: string[]
  /** Effective date of each row; empty for an order or an invalid row. */
  days: string[]
}

/** A line: the refresh of one connection. */
export interface Refresh {
  connection: string | undefined
  lists: JsonList[]
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
  #refresh: Refresh = { connection: undefined, lists: [], replace: undefined, errors: [] }
  /** List and row of the row that is read. */
  #place: { list?: List; row?: number } = {}

  constructor() {
    for (const type of types.values()) {
      const report = (detail: string, field?: string) => this.#report(detail, field)
      this.#readers.set(type, new RowReader(type, report, this.#scanner))
    }
  }

  /**
   * Validates a line with its line break.
   * @param problem reason why the line is not read
   * @returns undefined for a blank line
   */
  read(line: Buffer, problem?: string): Refresh | undefined {
    this.#refresh = { connection: undefined, lists: [], replace: undefined, errors: [] }
    this.#place = {}
    this.#scanner.start(line)
    if (problem === undefined && this.#scanner.atEnd()) return undefined
    try {
      if (problem === undefined) this.#readLine(line)
      else this.#report(problem)
    } catch (error) {
      this.#place = {}
      if (error instanceof NotJson) this.#report(`not valid JSON: ${jsonProblem(line)}`)
      else if (!(error instanceof UnexpectedValue)) throw error
    }
    return this.#refresh
  }

  #report(detail: string, field?: string): void {
    const { errors } = this.#refresh
    if (errors.length < SHOWN_PROBLEMS)
      errors.push({ ...this.#place, ...(field && { field }), detail })
  }

  #readLine(line: Buffer): void {
    if (this.#scanner.readValue().type !== 'object') {
      this.#report('a JSON object is expected: the refresh of a connection')
      return
    }
    const seen = new Set<string>()
    this.#readMembers((name) => {
      if (seen.has(name)) this.#report('the field appears twice', name)
      seen.add(name)
      const type = types.get(name)
      if (type) this.#readList(line, type)
      else if (name === 'replace') this.#readReplace()
      else this.#readConnection(name)
    })
    this.#scanner.expectEnd()
    if (!seen.has('connection')) this.#report('the field is missing', 'connection')
    const { lists, replace = {} } = this.#refresh
    for (const { type, days } of lists)
      for (const [index, day] of days.entries()) {
        const problem = day === '' ? undefined : outsideOf(replace, day)
        this.#place = { list: type.list, row: index + 1 }
        if (problem) this.#report(problem)
      }
  }

  #readMembers(read: (name: string) => void): void {
    const scanner = this.#scanner
    for (let more = !scanner.isEmpty(OBJECT_END); more; more = scanner.hasMore(OBJECT_END))
      read(scanner.readName())
  }

  #readConnection(name: string): void {
    const value = this.#scanner.readValue()
    if (name !== 'connection')
      this.#report(`there is no such field${suggestion(name, MEMBERS)}`, name.slice(0, 60))
    else if (value.type === 'string' && value.end > value.start)
      this.#refresh.connection = textOf(value)
    else this.#report(`the id of a connection is expected, in quotes, not ${describe(value)}`, name)
    requireScalar(value)
  }

  #readReplace(): void {
    const range = this.#scanner.readValue()
    if (range.type === 'null') return
    if (range.type !== 'object') {
      this.#report(`an object is expected, not ${describe(range)}`, 'replace')
      requireScalar(range)
      return
    }
    const replace: Replacement = {}
    this.#refresh.replace = replace
    this.#readMembers((name) => {
      const value = this.#scanner.readValue()
      const { type, bytes, start, end } = value
      const field = `replace.${name.slice(0, 60)}`
      if (name === 'yes' && type === 'boolean') replace.yes = textOf(value) === 'true'
      else if (name !== 'from' && name !== 'to') this.#report('from, to or yes is expected', field)
      else if (type === 'string' && isDay(bytes, start, end)) replace[name] = textOf(value)
      else if (type !== 'null') this.#report('an existing day is expected, as YYYY-MM-DD', field)
      requireScalar(value)
    })
    if (replace.from && replace.to && replace.from > replace.to)
      this.#report('from must not be after to', 'replace')
  }

  #readList(line: Buffer, type: RowType): void {
    const [scanner, reader] = [this.#scanner, this.#readers.get(type) as RowReader]
    const value = scanner.readValue()
    if (value.type !== 'array') {
      this.#report(`an array is expected, not ${describe(value)}`, type.list)
      requireScalar(value)
      return
    }
    const list: JsonList = { type, rows: [], days: [] }
    this.#refresh.lists.push(list)
    const ids = new Map<string, number>()
    for (let more = !scanner.isEmpty(ARRAY_END); more; more = scanner.hasMore(ARRAY_END)) {
      const row = list.rows.length + 1
      this.#place = { list: type.list, row }
      const { position } = scanner
      const before = this.#refresh.errors.length
      reader.readRow()
      list.rows.push(reader.jsonOf(line, position, scanner.position))
      const isValid = this.#refresh.errors.length === before
      list.days.push(isValid ? reader.dayOf(line) : '')
      const id = isValid ? reader.idOf(line) : `invalid ${row}`
      const first = ids.get(id)
      if (first !== undefined) this.#report(`duplicate of row ${first}`, type.key.field)
      else ids.set(id, row)
    }
    this.#place = {}
  }
}
