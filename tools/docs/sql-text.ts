import { format } from 'sql-formatter'
import { refreshesStatement, serverStatement } from '../../src/postgres/readiness.ts'
import type { CompiledStatement } from '../../src/postgres/statements.ts'
import { lookupStatements } from '../../src/queries/read.ts'
import type { Query } from '../../src/queries/response.ts'
import type { ListRoute } from '../../src/routes/list.ts'

export const STATEMENTS_FILE = 'docs/reference/statements.sql'

const WIDTH = 100

/** Statements for tokens of apps and of an identity provider differ only in the join with the app. */
const BY_TOKEN_HASH = ' by tokenHash'

const HEADING = `-- Every SQL statement of the service, by list. \`npm run docs:renew\` writes this file.
-- psql runs it: each statement is a PREPARE with the types of its parameters, for tokens of apps. For a token of an
-- identity provider, only the join with the app differs.
`

/** Returns the text of all statements: those of each list, then those of several lists, then those of no request. */
export function statementsText(lists: readonly Pick<ListRoute, 'list' | 'queries'>[]): string {
  const sections = lists.map(({ list, queries }) =>
    section(list.name, Object.values(queries.statements).map(byTokenHash)),
  )
  return [
    HEADING,
    ...sections,
    section('each list, if a response has no rows', [lookupStatements.tokenHash]),
    section('health checks', [serverStatement, refreshesStatement]),
  ].join('\n')
}

const byTokenHash = ({ tokenHash }: Query) => tokenHash

function section(title: string, statements: CompiledStatement[]): string {
  const line = '-'.repeat(80)
  return `${line}\n-- ${title}\n${line}\n\n${statements.map(preparation).join('\n')}`
}

/** Returns the PREPARE of a statement, which psql can run. It begins with the purpose, and names the parameters. */
export function preparation({ title, text, parameters }: CompiledStatement): string {
  const [purpose = '', ...query] = text.split('\n')
  const prepared = title.replace(BY_TOKEN_HASH, '').replaceAll(' ', '_')
  const lines = parameters.map(({ type, name }, index) => {
    const isLast = index === parameters.length - 1
    return `  ${type}${isLast ? '' : ','} -- $${index + 1}: ${name}`
  })
  const types = lines.length > 0 ? ` (\n${lines.join('\n')}\n)` : ''
  return `${purpose}\nprepare ${prepared}${types} as\n${readable(query.join('\n')).trimEnd()};\n`
}

/** Formats SQL, and removes quotes that no identifier of the service needs. */
function readable(sql: string): string {
  const text = format(sql.replaceAll(/"(\w+)"/g, '$1'), { language: 'postgresql' })
  return `${joinItems(joinBlocks(text.split('\n'))).join('\n')}\n`
}

/** Joins each line with the lines that it contains, if the result is short. The formatter breaks all of them. */
function joinBlocks(lines: string[]): string[] {
  const [head, ...rest] = lines
  if (head === undefined) return []
  const isInside = (line: string) => indentOf(line) > indentOf(head)
  const length = rest.findIndex((line) => !isInside(line) && !isEnd(line, head))
  const block = length < 0 ? rest : rest.slice(0, length)
  const parts = [head, ...block.map((line) => line.trim())]
  const line = parts.reduce((a, b) => (a.endsWith('(') || b.startsWith(')') ? a + b : `${a} ${b}`))
  if (line.length <= WIDTH && !head.startsWith('--'))
    return [line, ...joinBlocks(rest.slice(block.length))]
  return [head, ...joinBlocks(rest)]
}

const indentOf = (line: string) => line.search(/\S/)

/** True for the line that closes the block of `head`. */
const isEnd = (line: string, head: string) =>
  indentOf(line) === indentOf(head) && /^\s*([)]|end\b)/.test(line)

/** Joins columns and nulls of a list. */
function joinItems(lines: string[]): string[] {
  const joined: string[] = []
  for (const line of lines) {
    const last = joined.at(-1)
    const both = `${last} ${line.trim()}`
    if (items.test(`${last}\n${line}`) && both.length <= WIDTH) joined.splice(-1, 1, both)
    else joined.push(line)
  }
  return joined
}

/** A column, a null with its type, or a null of the type of a column. */
const item = '(?:\\(null::\\w+\\)\\.\\w+|[\\w.*:]+)(?: as \\w+)?'

/** Two lines with items, both at the same depth. */
const items = new RegExp(`^( +)(?:${item}, ?)+\\n\\1(?!case$)${item},?$`)
