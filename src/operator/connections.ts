import { InvalidArgumentError } from 'commander'
import { sql } from 'kysely'
import { NotInDatabase } from '../operator-error.ts'
import { bind, compile, type Parameter, parameter, type Statement } from '../postgres/statements.ts'
import { isConnectionKey } from '../postgres/tokens.ts'
import { findApp, type OperatorDatabase } from './database.ts'

const appId = parameter<string>('appId', 'uuid')
const externalId = parameter<string>('externalId', 'text')
const connectionId = parameter<string>('id', 'bigint')

const findStatement = compile(
  'load: connection',
  'Finds a connection of an app. An external id may look like the id of another one: the id comes first.',
  sql`
    select id from connection
    where app_id = ${appId} and (external_id = ${externalId} or id = ${connectionId})
    order by id is distinct from ${connectionId} limit 1`,
)

/** Finds a connection of an app by its id or external id. Without an app, returns the id itself, without a check. */
export async function findConnectionId(
  run: (statement: Statement, values: Parameter[]) => Promise<{ id: string }[]>,
  app: string | undefined,
  name: string,
): Promise<string | undefined> {
  const id = isConnectionKey(name) ? name : null
  // PostgreSQL refuses a text with NUL, which a line of UTF-16 or a damaged file has. No external id has one.
  if (app === undefined || name.includes('\0')) return id ?? undefined
  const values = bind(findStatement, { appId: app, externalId: name, id })
  return (await run(findStatement, values))[0]?.id
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
  const query = async ({ text }: Statement, values: Parameter[]) =>
    (await pool.query(text, values)).rows
  const id = await findConnectionId(query, app?.id, name)
  const { rows } = await sql<{ app: string; id: string; label: string | null }>`
    select app.name as app, ${DESCRIPTION} from connection join app on app.id = app_id
    where connection.id = ${id}`.execute(db)
  if (rows[0]) return rows[0]
  const none = app ? `The app ${app.name} has no connection` : 'There is no connection'
  throw new NotInDatabase(`${none} ${name}: \`connection list --app NAME\` shows those of an app.`)
}
