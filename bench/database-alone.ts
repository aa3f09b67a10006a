import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { captureStatement, SESSION } from './statement.ts'
import type { Ask } from './targets.ts'

const run = promisify(execFile)

interface Options {
  clients: number
  seconds: number
  /** Makes another statement of the service's. */
  change?: (text: string) => string
}

/**
 * The limit of the database: the service's own statement, sent by pgbench as the service's role with
 * the settings of its sessions, and nothing done with what comes back.
 * @param asks pages that differ in nothing but a run of connections, or in nothing at all
 * @param url of the role that asks
 * @returns requests, in all and per second, or undefined where there is no pgbench
 */
export async function databaseAlone(
  url: string,
  asks: Ask[],
  { clients, seconds, change = (text) => text }: Options,
): Promise<{ rate: number; requests: number } | undefined> {
  const { text, values } = await captureStatement(asks[0] as Ask)
  const folder = await mkdtemp(join(tmpdir(), 'pgbench-'))
  const script = join(folder, 'statement.sql')
  await writeFile(script, scriptOf(change(text), asks))
  // The first two are the tokens, which the script makes.
  const variables = values.slice(2).flatMap((value, index) => ['-D', `p${index + 3}=${value}`])
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

/** pgbench draws a connection, and the tokens follow from its number as in data-set.ts. */
function scriptOf(statement: string, asks: Ask[]): string {
  const hash = (name: string, number: string) =>
    `sha256(convert_to('${name}-' || (${number})::text, 'UTF8'))`
  const text = statement
    .replaceAll(/\$1(?!\d)/g, hash('app', ':n % 10'))
    .replaceAll(/\$2(?!\d)/g, hash('connection', ':n::int'))
    .replaceAll(/\$(\d+)/g, ':p$1')
  return `\\set n random(${asks[0]?.connection}, ${asks.at(-1)?.connection})\n${text};\n`
}
