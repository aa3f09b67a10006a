import { format } from 'sql-formatter'
import type { CompiledStatement } from '../../src/postgres/statements.ts'
import { serverStatements, statements } from '../../test/support/statements.ts'

export const SQL_FOLDER = 'docs/reference/sql'

const WIDTH = 100

/** The two ways to find the app of a request. Statements differ only in the join with it. */
const BY_CLIENT_ID = ' by clientId'
const BY_TOKEN_HASH = ' by tokenHash'

/** Text of each file of docs/reference/sql by its name: one file a statement, for tokens of apps. */
export function sqlFiles(): Map<string, string> {
  const all = [...statements.values(), ...serverStatements]
  const shown = all.filter(({ title }) => !title.endsWith(BY_CLIENT_ID))
  const fileOf = (title: string) => `${title.replace(BY_TOKEN_HASH, '').replaceAll(' ', '-')}.sql`
  return new Map(shown.map((statement) => [fileOf(statement.title), preparation(statement)]))
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

/** Two lines with columns, both at the same depth. */
const items = /^( +)(?:[\w.*]+(?: as \w+)?, ?)+\n\1(?!case$)[\w.*]+(?: as \w+)?,?$/
