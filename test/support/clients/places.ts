import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { Test } from 'tap'
import type { Database } from './drivers.ts'

/** A new place for copies: a file of SQLite, or a schema of PostgreSQL. */
export interface Place {
  file: string
  /** Runs a statement. */
  query(sql: string): Promise<Record<string, unknown>[]>
}

/**
 * Opens a new place.
 * @param url address of a database of PostgreSQL
 */
export function openPlace(t: Test, database: Database, url: string): Promise<Place> {
  return database === 'SQLite' ? openFile(t) : openSchema(t, url, newSchema())
}

async function openFile(t: Test): Promise<Place> {
  const file = join(t.testdir({}), `${randomBytes(6).toString('hex')}.db`)
  const query = async (sql: string) => {
    const sqlite = new DatabaseSync(file)
    try {
      return sqlite.prepare(sql).all()
    } finally {
      sqlite.close()
    }
  }
  return { file, query }
}

/** Returns the name of a new schema, which must be quoted in SQL. */
export const newSchema = () => `Copy"${randomBytes(6).toString('hex')}`
export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

/** Makes a schema, and opens it as the first one of the `search_path`. */
export async function openSchema(
  t: Test,
  database: string,
  schema: string,
  ...others: string[]
): Promise<Place> {
  const url = new URL(database)
  const path = [schema, ...others].map(quoted).join(',')
  url.searchParams.set('options', `-csearch_path=${path}`)
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  t.teardown(() => client.end())
  await client.query(`create schema ${quoted(schema)}`)
  const query = async (sql: string) => (await client.query(sql)).rows
  return { file: url.href, query }
}
