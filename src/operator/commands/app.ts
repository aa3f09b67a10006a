import { InvalidArgumentError } from 'commander'
import { sql } from 'kysely'
import type { Context } from '../command.ts'
import { findApp } from '../database.ts'
import { deleteApp, describeRows } from '../deletion.ts'
import { pluralize } from '../output.ts'
import { table } from '../table.ts'

export async function create({ db }: Context, name: string, { clientId }: { clientId?: string }) {
  const json = await db
    .insertInto('app')
    .values({ name, client_id: clientId })
    .returning(['id', 'name'])
    .executeTakeFirstOrThrow()
  return { json, text: `The app ${json.name} is registered (${json.id}).` }
}

export async function list({ db }: Context) {
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
  if ((clientId === null) !== none) throw new InvalidArgumentError('Give a client id, or --none.')
  const { id } = await findApp(db, name)
  await db.updateTable('app').set({ client_id: clientId }).where('id', '=', id).execute()
  const text = none ? 'no client id' : `the client id ${clientId}`
  return { json: { id, name, clientId }, text: `The app ${name} has ${text} from now on.` }
}

export async function remove({ db }: Context, name: string, { withConnections = false }) {
  const json = await deleteApp(db, { name, withConnections })
  const rows = json.connections > 0 ? `: ${describeRows(json)}` : ''
  const parts = `${pluralize(json.tokens, 'token')} and ${pluralize(json.connections, 'connection')}`
  return { json, text: `The app ${name} is deleted with ${parts}${rows}.` }
}
