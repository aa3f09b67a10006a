import { sql } from 'kysely'
import { isDay } from '../../schemas/formats.ts'
import { adviceOnForm, isObject, parseJson } from './json.ts'
import type { ListRows, Replacement } from './merge.ts'
import { mergeStatements, parameters } from './merge-statements.ts'
import { Problems } from './problems.ts'
import { type Row, type RowParser, reportUnknown, rowParser } from './row-parser.ts'
import { rowTypes } from './row-types.ts'
import { describe, NUMBER } from './rules.ts'
import type { Line } from './source.ts'

/** A line: the refresh of one connection. */
export interface Refresh {
  connection?: string
  lists: ListRows[]
  replace?: Replacement | undefined
  errors: Problems['shown']
}

const lists = Object.values(rowTypes).map((type) => {
  const columns = type.columns.map(
    ({ name, sqlType }, index) =>
      sql`(r ->> ${sql.lit(index)})::${sql.raw(sqlType)} as ${sql.ref(name)}`,
  )
  const rows = sql`(
    select line, ${sql.join(columns)}
    from jsonb_array_elements(${parameters.rows}) with ordinality rows (r, line)) i`
  return { type, statements: mergeStatements(type, rows, 'json') }
})
const MEMBERS = new Set(['connection', ...lists.map(({ type }) => type.list), 'replace'])

/** Smallest rows that fit in a line. Empty objects would need 30 times the memory of the line. */
const MOST_VALUES = 400_000

/** External ids have at most 255 characters of one or two units. */
const MOST_OF_AN_ID = 510

/** Parses a line of a refresh with the checks of the import. */
export function parseRefresh(input: Line): Refresh {
  const { text, problem } = input
  const problems = new Problems()
  const refresh: Refresh = { lists: [], errors: problems.shown }
  const isLong = text.length > MOST_VALUES && Number(text.match(/[[{]/g)?.length) > MOST_VALUES
  const tooMany = isLong ? `the line has more than ${MOST_VALUES} objects and arrays` : undefined
  const reason = problem ?? tooMany ?? adviceOnForm(input)
  const line = parseJson({ text, problem: reason }, problems)
  if (line === undefined) return refresh
  if (!isObject(line)) {
    problems.add('a JSON object is expected: the refresh of a connection')
    return refresh
  }
  const { connection, replace = null } = line
  if (connection === undefined) problems.add('the field is missing', 'connection')
  else if (typeof connection === 'string' && connection.length > MOST_OF_AN_ID)
    problems.add(`the id has more than ${MOST_OF_AN_ID} characters`, 'connection')
  else if (typeof connection === 'string' && connection !== '' && !connection.startsWith(NUMBER))
    refresh.connection = connection
  else {
    const detail = `the id of a connection is expected, in quotes, not ${describe(connection)}`
    problems.add(detail, 'connection')
  }
  reportUnknown(line, MEMBERS, problems)
  if (replace !== null) refresh.replace = parseReplace(replace, problems)
  for (const { type, statements } of lists) {
    const rows = line[type.list]
    if (Array.isArray(rows)) {
      const parser = rowParser(type, problems, refresh.replace)
      const values = { rows: JSON.stringify(parseRows(rows, parser)) }
      const { hasOddHour } = parser
      refresh.lists.push({ type, statements, count: rows.length, values, hasOddHour })
    } else if (rows !== undefined)
      problems.add(`an array is expected, not ${describe(rows)}`, type.list)
  }
  return refresh
}

function parseRows(rows: unknown[], parser: RowParser): Row[] {
  const { problems } = parser
  const { list, key } = parser.type
  const numbers = new Map<string, number>()
  const valid: Row[] = []
  for (const [index, value] of rows.entries()) {
    // A hostile line has millions of rows, and nobody counts their problems.
    if (problems.isFull) break
    problems.place = { list, row: index + 1 }
    const row = parser.parse(value)
    if (row === undefined) continue
    const id = String(row[key.index]).toLowerCase()
    const first = numbers.get(id)
    if (first !== undefined) problems.add(`duplicate of row ${first}`, key.field)
    else numbers.set(id, index + 1)
    valid.push(row)
  }
  problems.place = {}
  return valid
}

function parseReplace(range: unknown, problems: Problems): Replacement | undefined {
  if (!isObject(range))
    return problems.add(`an object is expected, not ${describe(range)}`, 'replace')
  const replace: Replacement = {}
  for (const [name, value] of Object.entries(range)) {
    const field = `replace.${name.slice(0, 60)}`
    if (name === 'yes' && typeof value === 'boolean') replace.yes = value
    else if (name !== 'from' && name !== 'to') problems.add('from, to or yes is expected', field)
    else if (isDay(value)) replace[name] = value
    else if (value !== null) problems.add('an existing day is expected, as YYYY-MM-DD', field)
  }
  if (replace.from && replace.to && replace.from > replace.to)
    problems.add('from must not be after to', 'replace')
  return replace
}
