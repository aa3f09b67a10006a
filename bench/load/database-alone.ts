import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { keyOf } from '../data/data-set.ts'
import { captureStatement, SESSION } from '../data/statement.ts'
import type { PageQuery } from '../servers/targets.ts'

const run = promisify(execFile)

interface Options {
  clients: number
  seconds: number
  /** Changes the text of the service's statement. */
  change?: (text: string) => string
}

/**
 * Measures the limit of the database. pgbench sends the service's statement with the settings of the
 * service's connections, and discards the rows.
 * @param queries pages of consecutive connections that are otherwise equal
 * @param url of the role that pgbench uses
 * @returns requests, in total and per second; undefined without pgbench
 */
export async function databaseAlone(
  url: string,
  queries: PageQuery[],
  { clients, seconds, change = (text) => text }: Options,
): Promise<{ rate: number; requests: number } | undefined> {
  const { text, values } = await captureStatement(queries[0] as PageQuery)
  const folder = await mkdtemp(join(tmpdir(), 'pgbench-'))
  const script = join(folder, 'statement.sql')
  await writeFile(script, scriptOf(change(text), queries))
  // $1 to $3 are the token hashes and the connection key, which the script computes.
  const variables = values.slice(3).flatMap((value, index) => ['-D', `p${index + 4}=${value}`])
  const load = ['-c', `${clients}`, '-j', '2', '-T', `${seconds}`, '-n', '-M', 'prepared']
  const env = { ...process.env, PGOPTIONS: SESSION }
  try {
    const { stdout } = await run('pgbench', [...load, '-f', script, ...variables, url], {
      env,
    })
    const number = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1])
    return { rate: number(/tps = ([\d.]+)/), requests: number(/actually processed: (\d+)/) }
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined
    throw error
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** pgbench picks a connection; its number determines the tokens, as in data-set.ts. */
function scriptOf(statement: string, queries: PageQuery[]): string {
  const hash = (name: string, number: string) =>
    `sha256(convert_to('${name}-' || (${number})::text, 'UTF8'))`
  const connectionHash = hash('connection', ':n::int')
  const text = statement
    .replaceAll(/\$1(?!\d)/g, hash('app', ':n % 10'))
    .replaceAll(/\$2(?!\d)/g, connectionHash)
    .replaceAll(/\$3(?!\d)/g, ':key')
    .replaceAll(/\$(\d+)/g, ':p$1')
  const numbers = queries.map(({ connection }) => connection)
  const [first = 0, last = first] = [numbers.at(0), numbers.at(-1)]
  return `\\set n random(${first}, ${last})\n\\set key ${keyOfNumber(first, last)}\n${text};\n`
}

/**
 * Returns a pgbench expression for the key of connection :n, as a binary search. pgbench cannot compute
 * a SHA-256, and in SQL it would cost more than the statement.
 */
function keyOfNumber(first: number, last: number): string {
  if (first === last) return keyOf(first)
  const middle = Math.floor((first + last) / 2)
  const [low, high] = [keyOfNumber(first, middle), keyOfNumber(middle + 1, last)]
  return `case when :n <= ${middle} then ${low} else ${high} end`
}
