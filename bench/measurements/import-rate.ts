import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { keyOf, makeConnections } from '../data/data-set.ts'
import { type BenchDatabase, type PostgresServer, withDatabase } from '../data/database.ts'
import { transactionLines } from '../data/rows.ts'
import { digits, table } from '../report/tables.ts'
import { cpuOf, cpuOfFamily, peakMemory } from '../servers/process-usage.ts'

const ROWS = 1_000_000

/** Measures the import command, with all indexes and triggers in place. */
export async function measureImport(server: PostgresServer): Promise<string> {
  return withDatabase(server, importTable)
}

async function importTable(database: BenchDatabase): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'import-'))
  const file = join(folder, 'rows.ndjson')
  await makeConnections(database.owner, 1)
  await pipeline(transactionLines(1, ROWS, 100), createWriteStream(file))
  const rows: (string | undefined)[][] = []
  for (const words of ['new rows', 'the same file again']) {
    const before = cpuOfFamily(database.pid ?? 0)
    const { seconds, memory, cpu } = await runImport(database.ownerUrl, file)
    const databaseCpu = cpuOfFamily(database.pid ?? 0) - before
    const perRow = [cpu, databaseCpu].map((ms) => digits((ms * 1000) / ROWS))
    rows.push([words, digits(seconds), digits(ROWS / seconds), ...perRow, memory.toFixed(0)])
    await database.owner.query('vacuum (analyze) portfolio_transaction')
  }
  await rm(folder, { recursive: true })
  const title = `Import of ${ROWS.toLocaleString('en')} rows`
  const cpu = ['CPU µs a row, import', 'CPU µs a row, PostgreSQL']
  return table([title, 'seconds', 'rows/s', ...cpu, 'peak MB of the import'], rows)
}

async function runImport(url: string, file: string) {
  const script = join(import.meta.dirname, '../../src/operator/main.ts')
  const words = ['import', 'portfolio-transactions', '--connection', keyOf(1), file]
  const begin = performance.now()
  const child = spawn(process.execPath, [script, ...words, '--json'], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const exit = once(child, 'exit')
  let memory = 0
  let cpu = 0
  while (child.exitCode === null && child.signalCode === null) {
    memory = peakMemory(child.pid ?? 0) ?? memory
    // A process that has just ended has no time any more.
    cpu = Math.max(cpu, cpuOf(child.pid ?? 0))
    await Promise.race([exit, sleep(200)])
  }
  if (child.exitCode !== 0) throw new Error('the import failed')
  return { seconds: (performance.now() - begin) / 1000, memory, cpu }
}
