import { readFile } from 'node:fs/promises'
import { type Kysely, sql } from 'kysely'

/**
 * Versions that a connection had, the time of its last refresh, a role that writes rows, and triggers that give each
 * row its change number, whatever its writer brings along. The SQL files with the number 0005 have the statements.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await execute(db, await read('0005-tables.sql'))
  await execute(db, await read('0005-order-triggers.sql'))
  const triggers = await read('0005-transaction-triggers.sql')
  await execute(db, triggers)
  await execute(db, forAccountTransactions(triggers))
  await execute(db, await read('0005-rights.sql'))
}

/** Both lists have the same triggers: the file is written for portfolio transactions. */
function forAccountTransactions(text: string): string {
  return text
    .replaceAll('portfolio_transaction', 'account_transaction')
    .replaceAll('transaction_id', 'movement_id')
}

async function read(file: string): Promise<string> {
  return await readFile(new URL(file, import.meta.url), 'utf8')
}

/** Executes the statements of a text one by one: Citus passes each of them to its workers. */
async function execute(db: Kysely<unknown>, text: string): Promise<void> {
  for (const [statement] of text.matchAll(STATEMENT)) await sql.raw(statement).execute(db)
}

/** A statement ends with a semicolon that is neither in a comment nor in the body of a function. */
const STATEMENT = /(?:--.*|\$\$[\s\S]*?\$\$|[^;])+;/g
