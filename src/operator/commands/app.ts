import { sql } from 'kysely'
import { OperatorError } from '../../operator-error.ts'
import type { Context } from '../command.ts'
import { findApp } from '../database.ts'
import { deleteApp, describeRows } from '../deletion.ts'
import { isViolation, UsageError } from '../errors.ts'
import { pluralize } from '../output.ts'
import { table } from '../table.ts'

export async function createApp(
  { db }: Context,
  name: string,
  { clientId = null }: { clientId?: string | null },
) {
  const json = await db
    .insertInto('app')
    .values({ name, client_id: clientId })
    .returning(['id', 'name'])
    .executeTakeFirstOrThrow()
    .catch((error: unknown) => explainTaken(error, name, clientId))
  return { json, text: `The app ${json.name} is registered (${json.id}).` }
}

export async function listApps({ db }: Context) {
  // Citus supports no correlated subquery here.
  const { rows: items } = await sql<object>`
    select id, name, client_id as "clientId", created_at as "createdAt",
      coalesce(count, 0)::integer as connections
    from app left join (select app_id, count(*) from connection group by 1) c on app_id = id
    order by name`.execute(db)
  return { json: { items }, text: table(items, 'There are no apps.') }
}

export async function setClientId(
  { db }: Context,
  name: string,
  clientId: string | null = null,
  { none = false }: { none?: boolean },
) {
  if ((clientId === null) !== none) throw new UsageError('Give a client id, or --none.')
  const { id } = await findApp(db, name)
  const update = db.updateTable('app').set({ client_id: clientId }).where('id', '=', id)
  await update.execute().catch((error: unknown) => explainTaken(error, name, clientId))
  const text = none ? 'no client id' : `the client id ${clientId}`
  return { json: { id, name, clientId }, text: `The app ${name} has ${text} from now on.` }
}

export async function removeApp({ db, show }: Context, name: string, { withConnections = false }) {
  const json = await deleteApp(db, { name, withConnections }, show)
  const rows = json.connections > 0 ? `: ${describeRows(json)}` : ''
  const parts = `${pluralize(json.tokens, 'token')} and ${pluralize(json.connections, 'connection')}`
  return { json, text: `The app ${name} is deleted with ${parts}${rows}.` }
}

function explainTaken(error: unknown, name: string, clientId: string | null): never {
  if (isViolation(error, 'app_name_key')) throw new OperatorError(`The app ${name} already exists.`)
  if (isViolation(error, 'app_client_id_key'))
    throw new OperatorError(`Another app already has the client id ${clientId}.`)
  throw error
}
