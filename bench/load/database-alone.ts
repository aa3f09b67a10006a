import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Parameter } from '../../src/postgres/statements.ts'
import { captureStatement, SESSION } from '../data/statement.ts'
import type { PageQuery } from '../servers/targets.ts'

const run = promisify(execFile)

interface Options {
  /** Requests in flight at any time. */
  clients: number
  seconds: number
}

/** Reads that the service keeps in flight on one connection (src/postgres/pool.ts). */
const PIPELINE = 8

/** Scripts, of which pgbench picks one at a time. It prepares each statement of each script in each session. */
const SCRIPTS = 4

/**
 * Measures the database without the service. pgbench sends what the service sends: the same prepared statement with the
 * same values, eight in a pipeline, with the settings of the service's connections. It discards the rows.
 * @param url of the role that pgbench uses
 * @returns requests, in total and per second; undefined without pgbench
 */
export async function databaseAlone(
  url: string,
  queries: PageQuery[],
  { clients, seconds }: Options,
): Promise<{ rate: number; requests: number } | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'pgbench-'))
  const pipeline = Math.min(PIPELINE, clients)
  const scripts: string[] = []
  const variables: string[] = []
  for (let script = 0; script < SCRIPTS; script += 1) {
    const lines = ['\\startpipeline']
    for (let place = 0; place < pipeline; place += 1) {
      const number = script * pipeline + place
      const { text, values } = await captureStatement(queries[number % queries.length] as PageQuery)
      for (const [index, value] of values.entries())
        variables.push('-D', `v${number}_${index + 1}=${textOf(value)}`)
      lines.push(`${text.replaceAll(/\$(\d+)/g, `:v${number}_$1`)};`)
    }
    const file = join(folder, `${script}.sql`)
    await writeFile(file, [...lines, '\\endpipeline', ''].join('\n'))
    scripts.push('-f', file)
  }
  const sessions = Math.max(1, Math.round(clients / pipeline))
  const load = ['-c', `${sessions}`, '-j', `${Math.min(2, sessions)}`, '-T', `${seconds}`, '-n']
  const env = { ...process.env, PGOPTIONS: SESSION }
  try {
    const args = [...load, '-M', 'prepared', ...scripts, ...variables, url]
    const { stdout } = await run('pgbench', args, { env })
    const number = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1])
    return {
      rate: number(/tps = ([\d.]+)/) * pipeline,
      requests: number(/actually processed: (\d+)/) * pipeline,
    }
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined
    throw error
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Text of a parameter, as pgbench sends it. */
function textOf(value: Parameter): string {
  if (Buffer.isBuffer(value)) return `\\x${value.toString('hex')}`
  return value ?? ''
}
