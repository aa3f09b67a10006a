import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type pg from 'pg'
import type { Test } from 'tap'
import { openClient } from './database.ts'
import type { Importing } from './importing.ts'
import { operatorHere, startOperator } from './operator-process.ts'

/** Result of a line of `refresh`. */
export type Result = Record<string, unknown> & { line: number; errors?: { detail: string }[] }

/** Parses the results of a refresh, in the order of the lines. */
export const parse = (output: string): Result[] =>
  output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .sort((a, b) => a.line - b.line)

/** Field, row and reason of each error of a line. */
export const details = ({ errors = [] }: Result) =>
  errors.map(({ detail, ...place }) => [...Object.values(place), detail].join(': '))

export interface Lists {
  portfolio?: string[]
  account?: string[]
  orders?: string[]
  replace?: object
}

/** Returns a line for `refresh`. */
export function line(
  connection: { id: string } | string,
  { portfolio, account, orders, replace }: Lists,
) {
  const id = typeof connection === 'string' ? connection : connection.id
  const members = [`"connection":${JSON.stringify(id)}`]
  if (portfolio) members.push(`"portfolioTransactions":[${portfolio}]`)
  if (account) members.push(`"accountTransactions":[${account}]`)
  if (orders) members.push(`"transferOrders":[${orders}]`)
  if (replace) members.push(`"replace":${JSON.stringify(replace)}`)
  return `{${members}}`
}

/** Counts of a list in a result. */
export const counts = (inserted: number, updated = 0, unchanged = 0, removed = 0) => ({
  inserted,
  updated,
  unchanged,
  removed,
})

/** Gives a row of portfolioLine() or accountLine() another day. */
export const dated = (row: string, day: string) => row.replace('2024-02-29', day)

/** Calls `refresh` on a database. */
export function refreshing(t: Test) {
  const folder = t.testdir()
  let files = 0
  const fileOf = async (content: string | Buffer): Promise<string> => {
    files += 1
    const path = join(folder, `${files}.ndjson`)
    await writeFile(path, content)
    return path
  }
  /** Refreshes from a file, and returns the results in the order of the lines. */
  const refreshIn = async (DATABASE_URL: string, content: string | Buffer, ...flags: string[]) => {
    const ended = await operatorHere(['refresh', await fileOf(content), ...flags], { DATABASE_URL })
    return { ...ended, results: parse(ended.stdout) }
  }
  return { fileOf, refreshIn }
}

/** Starts the command with an open standard input. */
export function startRefresh(DATABASE_URL: string, ...flags: string[]) {
  const operator = startOperator(['refresh', ...flags], { env: { DATABASE_URL } })
  const results: Result[] = []
  createInterface(operator.child.stdout).on('line', (result) => results.push(JSON.parse(result)))
  return { ...operator, results }
}

/** Creates two connections, and locks one of them until `holder` ends its transaction. */
export async function lockConnection(t: Test, { url, newConnection }: Importing) {
  const [locked, free] = [await newConnection(), await newConnection()]
  const holder: pg.Client = await openClient(t, url)
  await holder.query('begin')
  await holder.query('select from connection where id = $1 for update', [locked.id])
  return { locked, free, holder }
}
