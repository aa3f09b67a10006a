import { tokenHash } from '../../../src/postgres/tokens.ts'
import type { ListRoute } from '../../../src/routes/list.ts'
import { addRows } from '../../support/any-list.ts'
import { fc } from '../../support/random.ts'
import { addApp, addConnection } from '../../support/rows.ts'
import {
  type Bearer,
  type CredentialPlan,
  credentialPlan,
  everyCredential,
  issueCredential,
  type Sources,
  unknownBearers,
} from './credentials.ts'

/** Ids of rows by the name of their list. */
export type RowIds = Map<string, string[]>

/** Credentials of an app, and its connections by their tokens. */
export interface AppPlan {
  credentials: CredentialPlan[]
  /** True if the database has the client id of the identity provider. */
  hasClientId: boolean
  connections: { token: string; rows: number }[]
}

/** Few tokens: every credential requests each of them. */
export const connectionTokens = ['one', 'two', 'three', 'four', 'five', 'six']

export const randomPlan: fc.Arbitrary<AppPlan[]> = fc
  .array(
    fc.record({
      credentials: fc.array(credentialPlan, { minLength: 1, maxLength: 5 }),
      hasClientId: fc.boolean(),
      connections: fc.uniqueArray(
        fc.record({ token: fc.constantFrom(...connectionTokens), rows: fc.nat(3) }),
        { selector: ({ token }) => token, maxLength: 4 },
      ),
    }),
    { minLength: 2, maxLength: 5 },
  )
  .map(withUniqueTokens)

/** A connection token is unique in the database: the first app keeps it. */
function withUniqueTokens(apps: AppPlan[]): AppPlan[] {
  const taken = new Set<string>()
  const isFree = ({ token }: { token: string }) => !taken.has(token) && taken.add(token)
  return apps.map((app) => ({ ...app, connections: app.connections.filter(isFree) }))
}

/** Two apps with all credentials, a connection with rows and one without. */
export const fullPlan: AppPlan[] = [
  ['one', 'two'],
  ['three', 'four'],
].map(([full = '', empty = ''], index) => ({
  credentials: everyCredential,
  hasClientId: true,
  connections: [
    { token: full, rows: 2 - index },
    { token: empty, rows: 0 },
  ],
}))

/** The model: rows of each app and connection. */
export interface SampleData {
  bearers: Bearer[]
  appIds: string[]
  /** Row ids of a connection token, for one app; undefined if the app has no such connection. */
  rowsOf(appId: string, token: string): RowIds | undefined
  /** All row ids of an app. */
  secretsOf(appId: string): string[]
  /** Names, client ids, labels, tokens and hashes, which no log line and no metric may contain. */
  names: string[]
  /** The whole connection token: these apps alone have it. */
  tokenOf(token: string): string
}

export async function createSampleData(
  sources: Sources,
  plan: AppPlan[],
  lists: readonly ListRoute[],
): Promise<SampleData> {
  const { db } = sources
  const rows = new Map<string, RowIds>()
  const bearers: Bearer[] = []
  const appIds: string[] = []
  // Tokens of these apps only: other apps are in the same tables.
  const own = crypto.randomUUID()
  for (const [number, { credentials, connections, hasClientId }] of plan.entries()) {
    const clientId = `client ${number} ${own}`
    const name = `app ${number} ${own}`
    const appId = await addApp(db, { name, client_id: hasClientId ? clientId : null })
    appIds.push(appId)
    for (const one of credentials) {
      bearers.push(await issueCredential(sources, { appId, clientId, isKnown: hasClientId }, one))
    }
    for (const { token, rows: count } of connections) {
      const connection = await addConnection(db, appId, `${token} ${own}`)
      await label(db, connection, `label ${own}`)
      const ids: RowIds = new Map()
      for (const { list } of lists) ids.set(list.name, await addRows(db, list, connection, count))
      rows.set(`${appId} ${token}`, ids)
    }
  }
  bearers.push(...(await unknownBearers(sources, String(appIds[0]))))
  const secretsOf = (appId: string) =>
    [...rows].flatMap(([key, ids]) => (key.startsWith(appId) ? [...ids.values()].flat() : []))
  return {
    bearers,
    appIds,
    rowsOf: (appId, token) => rows.get(`${appId} ${token}`),
    secretsOf,
    // All names of apps, client ids, labels and tokens of connections end in `own`.
    names: [own, ...bearers.map(({ token }) => token), ...hashes(own)],
    tokenOf: (token) => `${token} ${own}`,
  }
}

/** Hashes of the connection tokens, as the database has them. */
const hashes = (own: string) =>
  connectionTokens.flatMap((token) => {
    const hash = tokenHash(`${token} ${own}`)
    return [hash.toString('hex'), hash.toString('base64'), hash.toString('base64url')]
  })

async function label(db: Sources['db'], { id }: { id: string }, text: string): Promise<void> {
  await db.updateTable('connection').set({ label: text }).where('id', '=', id).execute()
}
