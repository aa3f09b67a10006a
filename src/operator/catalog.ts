import { readFile } from 'node:fs/promises'
import { type Kysely, sql } from 'kysely'
import type { Tables } from '../postgres/tables.ts'
import { isCitus } from './database.ts'
import { neededRights } from './rights.ts'

/** The file with the schema that the migrations make, as statements. */
export const SCHEMA_FILE = 'docs/reference/schema.sql'

/** Reads the statements that would create the schema of a database. */
export async function catalogOf(db: Kysely<Tables>): Promise<string[]> {
  const text = await readFile(new URL('catalog.sql', import.meta.url), 'utf8')
  const { rows } = await sql.raw<{ text: string }>(text).execute(db)
  // A function finds its tables by the name of their schema alone.
  return rows.map(({ text }) =>
    text.startsWith('CREATE OR REPLACE FUNCTION') ? text : text.replaceAll('public.', ''),
  )
}

/** Statements that no migration made and that are a problem. An operator may add an index, for example. */
const GUARDED = /^(create policy|create trigger|grant|alter table \S+ disable trigger|reindex)/i

/** Compares the catalog with SCHEMA_FILE in a transaction. @returns statements that create what is missing or extra */
export async function compareSchema(db: Kysely<Tables>) {
  await sql
    .raw(`
      set local timezone = 'UTC';
      set local quote_all_identifiers = off;
      set local standard_conforming_strings = on;
      set local intervalstyle = postgres`)
    .execute(db)
  const text = await readFile(new URL(`../../${SCHEMA_FILE}`, import.meta.url), 'utf8')
  // A function may have an empty line, but each of its lines is indented.
  const wanted = text.slice(text.indexOf('\n\n') + 2, -2).split(/;\n\n(?=\S)/)
  const found = await catalogOf(db)
  const known = new Set(wanted.map(bare))
  const present = new Set(found.map(bare))
  const added = found.filter((one) => GUARDED.test(one) && !known.has(bare(one)))
  const roles = await readFile(new URL('roles.sql', import.meta.url), 'utf8')
  const { rows: repairs } = await sql.raw<{ text: string }>(roles).execute(db)
  return {
    missing: [
      ...wanted.filter((one) => !present.has(bare(one))),
      ...(await neededRights(db)),
      ...repairs.map((repair) => repair.text),
    ],
    // Citus adds triggers and rights of its own.
    unexpected: (await isCitus(db)) ? [] : added,
  }
}

/**
 * Returns the statements that rebuild the indexes of texts, if glibc or ICU now sorts in another way than at their creation:
 * a text would not be found in them, or be stored twice.
 */
export async function staleCollation(db: Kysely<Tables>): Promise<string[]> {
  const { rows } = await sql<{ text: string }>`
    with stale as (
      select datname as name from pg_database
      where datname = current_database() and datcollversion <> pg_database_collation_actual_version(oid))
    select format('reindex index concurrently %s', indexrelid::regclass) as text
    from pg_index join pg_class c on c.oid = indrelid cross join stale
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
      and 'pg_catalog."default"'::regcollation = any(indcollation::oid[])
    union all select format('alter database %I refresh collation version', name) from stale`.execute(
    db,
  )
  return rows.map((row) => row.text)
}

/** Leaves out what docs/reference/partitions.sql and citus.sql change. */
function bare(statement: string): string {
  return statement
    .replace(/ partition by hash \(.*?\)/i, '')
    .replace(' ON ONLY ', ' ON ')
    .replace('UNIQUE INDEX connection_external_id', 'INDEX connection_external_id')
    .trim()
}

/** Returns the statements that revoke what PUBLIC has and docs/reference/public-rights.sql revokes. */
export async function publicRights(db: Kysely<Tables>): Promise<string[]> {
  const text = await readFile(new URL('public-rights.sql', import.meta.url), 'utf8')
  const { rows } = await sql.raw<{ text: string }>(text).execute(db)
  return rows.map((row) => row.text)
}
