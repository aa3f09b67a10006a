import type pg from 'pg'
import { createPool, type PoolOptions } from './pool.ts'
import type { RawRows } from './raw-rows.ts'
import { type Parameter, runStatement, type Statement } from './statement.ts'
import { DatabaseUnavailable, isPassing, isStalePlan } from './unavailable.ts'

/** All that the service needs of PostgreSQL. */
export interface Database {
  /**
   * Runs a SELECT.
   * @throws DatabaseUnavailable when no answer can be had within the time that a request has
   */
  read(statement: Statement, values: Parameter[]): Promise<RawRows>
  close(): Promise<void>
}

export interface DatabaseOptions extends PoolOptions {
  /** Whether statements are prepared by name; a pooler may not carry that (PgBouncer before 1.21). */
  prepare: boolean
}

export function openDatabase(options: DatabaseOptions): Database {
  const pool = createPool(options)
  const deadline = options.statementTimeoutMs + GRACE_MS
  return {
    read: async (statement, values) => {
      const named = options.prepare ? statement : { ...statement, name: '' }
      try {
        return await onClient(pool, deadline, (client) => runStatement(client, named, values))
      } catch (error) {
        if (isPassing(error)) {
          throw new DatabaseUnavailable('the database did not answer', { cause: error })
        }
        throw error
      }
    },
    close: () => pool.end(),
  }
}

/** The server ends a slow statement by itself; this much later, it is taken for dead. */
const GRACE_MS = 1_000

/** A client goes back to the pool, unless it, or the server behind it, can no longer be trusted. */
async function onClient<T>(
  pool: pg.Pool,
  deadlineMs: number,
  use: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  let broken: Error | undefined
  const timer = setTimeout(() => {
    broken = new Error('the database stopped answering')
    client.connection.stream.destroy(broken)
  }, deadlineMs)
  try {
    return await use(client)
  } catch (error) {
    broken ??= isPassing(error) || isStalePlan(error) ? (error as Error) : undefined
    throw error
  } finally {
    clearTimeout(timer)
    client.release(broken)
  }
}
