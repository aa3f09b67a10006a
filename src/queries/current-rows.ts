import { sql } from 'kysely'
import type { Holding } from '../database/answer-memory.ts'
import { compile } from '../database/builder.ts'
import type { Database } from '../database/database.ts'
import type { RawRows } from '../database/raw-rows.ts'
import type { Replica } from '../database/replica.ts'
import type { Parameter, Statement } from '../database/statement.ts'
import { HostFailed } from '../database/unavailable.ts'
import { type CallerKind, forEachCaller } from './calling-app.ts'
import { connectionOfApp } from './connection.ts'
import { type Head, headColumns, takeHead } from './head.ts'
import { shortWork } from './turns.ts'

/** One question: the statement of an answer, and its parameters. */
export interface Question {
  kind: CallerKind
  statement: Statement
  /** The caller and the connection, then the statement's own. */
  parameters: [Parameter, Buffer, ...Parameter[]]
  /** The versions of the data that the client has; `*` stands for any. */
  knownVersions: string[]
  holding: Holding
}

export interface Found {
  head: Head
  /** Undefined where the client has this version already. */
  rows: RawRows | undefined
}

/**
 * Reads head and rows of an answer; but first, where the client has one already, whether that is still
 * good, which is a look-up of two rows.
 *
 * Where there are replicas, one of them is asked for the rows and the primary for the head: a replica's
 * rows count only if they are of the version that the primary has now. So a token that was revoked, or a
 * connection that was deleted, is refused at once, nobody is told of an earlier state, and a replica that
 * lags costs a second read and nothing else.
 * @throws DatabaseUnavailable, TokenUnknown, TokenExpired or ConnectionNotFound
 */
export async function currentRows(db: Database, question: Question): Promise<Found> {
  const { statement, parameters, knownVersions, holding } = question
  if (!holding.heavy) shortWork()
  const isKnown = ({ version }: Head) =>
    knownVersions.includes(version) || knownVersions.includes('*')
  const head = knownVersions.length > 0 ? await readHead(db, question) : undefined
  if (head && isKnown(head)) return { head, rows: undefined }
  const replica = db.replica(parameters[1])
  const found = replica && (await readFromReplica(db, replica, question, head))
  if (found) return found
  const rows = await db.read(statement, parameters, holding)
  return { head: takeHead(rows), rows }
}

/** The head of any answer, without its rows and its total. */
const heads = forEachCaller((kind) =>
  compile(`head by ${kind}`, sql`${connectionOfApp(kind).select(headColumns(sql`null`))}`),
)

async function readHead(db: Database, { kind, parameters }: Question): Promise<Head> {
  return takeHead(await db.read(heads[kind], parameters.slice(0, 2)))
}

/**
 * @param known the head that the primary has, where it has been read
 * @returns undefined where the replica has not what the primary has
 */
async function readFromReplica(
  db: Database,
  replica: Replica,
  question: Question,
  known: Head | undefined,
): Promise<Found | undefined> {
  const { statement, parameters, holding } = question
  const reading = replica.read(statement, parameters, holding).catch((error: unknown) => {
    if (error instanceof HostFailed) return undefined
    throw error
  })
  // Whoever the primary refuses need not wait for what comes of it.
  reading.catch(() => {})
  const current = known ?? (await readHead(db, question))
  const rows = await reading
  if (rows === undefined) return undefined
  const head = headOf(rows)
  if (head?.appId === current.appId && head.version === current.version) return { head, rows }
  rows.discard()
  return undefined
}

/** A replica that knows less than the primary refuses what the primary does not. */
function headOf(rows: RawRows): Head | undefined {
  try {
    return takeHead(rows)
  } catch {
    return undefined
  }
}
