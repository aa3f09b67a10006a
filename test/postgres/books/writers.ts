import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import type { Test } from 'tap'
import type { Step, Work } from './history.ts'
import type { Statement } from './statements.ts'

/** Sessions that write, closed at teardown. */
export async function openWriters(t: Test, url: string, count: number): Promise<pg.Client[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      // Deadlocks of transactions are part of a history; it need not wait a second for each.
      const client = new pg.Client({ connectionString: url, options: '-c deadlock_timeout=20ms' })
      await client.connect()
      t.teardown(() => client.end())
      return client
    }),
  )
}

export interface Outcome {
  /** Connections whose rows a statement that was committed may have changed. */
  touched: Set<string>
  /** SQLSTATEs of the statements that failed. */
  failures: string[]
}

/** Lets every writer of a step do its work, all at the same time. */
export async function play(writers: pg.Client[], step: Step): Promise<Outcome> {
  const outcomes = await Promise.all(
    step.map((work, index) => write(writers[index] as pg.Client, work)),
  )
  return {
    touched: new Set(outcomes.flatMap(({ touched }) => [...touched])),
    failures: outcomes.flatMap(({ failures }) => failures),
  }
}

async function write(client: pg.Client, work: Work): Promise<Outcome> {
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
  // PostgreSQL answers COMMIT with ROLLBACK where the transaction has failed before.
  return { touched: new Set(command === 'ROLLBACK' ? [] : touched), failures }
}

/** Resolves with what PostgreSQL says was done, such as INSERT. */
async function run(client: pg.Client, { sql, input }: Statement): Promise<string> {
  if (input === undefined) return (await client.query(sql)).command
  await pipeline(Readable.from([input]), client.query(copyFrom(sql)))
  return 'COPY'
}
