import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import type { Test } from 'tap'
import { openClient } from '../../support/database.ts'
import type { Step, Work } from './history.ts'
import type { Statement } from './statements.ts'

/** Opens connections for writers, and closes them at teardown. */
export async function openWriters(t: Test, url: string, count: number): Promise<pg.Client[]> {
  // Histories contain deadlocks; detecting one takes a second by default.
  const open = () => openClient(t, url, '-c deadlock_timeout=20ms')
  return Promise.all(Array.from({ length: count }, open))
}

export interface StepResult {
  /** Connections whose rows a committed statement may have changed. */
  touched: Set<string>
  /** SQLSTATEs of the statements that failed. */
  failures: string[]
}

/** Runs the work of all writers of a step at the same time. */
export async function play(writers: pg.Client[], step: Step): Promise<StepResult> {
  const results = await Promise.all(
    step.map((work, index) => write(writers[index] as pg.Client, work)),
  )
  return {
    touched: new Set(results.flatMap(({ touched }) => [...touched])),
    failures: results.flatMap(({ failures }) => failures),
  }
}

async function write(client: pg.Client, work: Work): Promise<StepResult> {
  const touched: string[] = []
  const failures: string[] = []
  let command = ''
  for (const statement of work) {
    try {
      command = await run(client, statement)
      touched.push(...statement.touches)
    } catch (error) {
      failures.push((error as pg.DatabaseError).code ?? String(error))
    }
  }
  // PostgreSQL responds ROLLBACK to the COMMIT of a failed transaction.
  return { touched: new Set(command === 'ROLLBACK' ? [] : touched), failures }
}

/** @returns the command tag, such as INSERT */
async function run(client: pg.Client, { sql, input }: Statement): Promise<string> {
  if (input === undefined) return (await client.query(sql)).command
  await pipeline(Readable.from([input]), client.query(copyFrom(sql)))
  return 'COPY'
}
