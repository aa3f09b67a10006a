import { InvalidArgumentError } from 'commander'
import { sql } from 'kysely'
import { NotInDatabase } from '../operator-error.ts'
import { isConnectionKey } from '../postgres/tokens.ts'
import { findApp, type OperatorDatabase } from './database.ts'

/** Finds a connection of an app by its id or external id. Without an app, returns the id itself, without a check. */
export async function findConnectionId(
  run: (text: string, values: unknown[]) => Promise<{ id: string }[]>,
  appId: string | undefined,
  name: string,
): Promise<string | undefined> {
  const id = isConnectionKey(name) ? name : null
  // PostgreSQL refuses a text with NUL, which a line of UTF-16 or a damaged file has. No external id has one.
  if (appId === undefined || name.includes('\0')) return id ?? undefined
  // An external id may look like the id of another connection: the id comes first.
  const text = `
    select id from connection where app_id = $1 and (external_id = $2 or id = $3::bigint)
    order by id is distinct from $3::bigint limit 1`
  return (await run(text, [appId, name, id]))[0]?.id
}

/** Columns of a connection, without secrets. */
export const DESCRIPTION = sql`connection.id, external_id as "externalId", label,
  portfolio_transactions::float8 as "portfolioTransactions",
  account_transactions::float8 as "accountTransactions",
  connection.created_at as "createdAt", changed_at as "changedAt", refreshed_at as "refreshedAt"`

/** Finds a connection by its id or, with an app, by its external id. @throws OperatorError when there is none */
export async function findConnection(
  { db, pool }: OperatorDatabase,
  name: string,
  appName: string | undefined,
) {
  // The value may be a token, so the message must not contain it.
  if (appName === undefined && !isConnectionKey(name))
    throw new InvalidArgumentError(
      'The id of a connection is a number: `connection list --app NAME` shows it. An external id needs --app.',
    )
  const app = appName === undefined ? undefined : await findApp(db, appName)
  const query = async (text: string, values: unknown[]) => (await pool.query(text, values)).rows
  const id = await findConnectionId(query, app?.id, name)
  const { rows } = await sql<{ app: string; id: string; label: string | null }>`
    select app.name as app, ${DESCRIPTION} from connection join app on app.id = app_id
    where connection.id = ${id}`.execute(db)
  if (rows[0]) return rows[0]
  const none = app ? `The app ${app.name} has no connection` : 'There is no connection'
  throw new NotInDatabase(`${none} ${name}: \`connection list --app NAME\` shows those of an app.`)
}
