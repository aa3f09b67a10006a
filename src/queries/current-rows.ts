import { sql } from 'kysely'
import type { Holding } from '../database/answer-memory.ts'
import { compile } from '../database/builder.ts'
import type { Database } from '../database/database.ts'
import { RawRows } from '../database/raw-rows.ts'
import type { Replica } from '../database/replica.ts'
import type { Parameter, Statement } from '../database/statement.ts'
import { HostFailed } from '../database/unavailable.ts'
import { type CallerKind, forEachCaller } from './calling-app.ts'
import { connectionOfApp } from './connection.ts'
import { type Head, headColumns, takeHead } from './head.ts'

/** One question: the statement of an answer, and its parameters. */
export interface Question {
  kind: CallerKind
  statement: Statement
  /** The caller, the connection, the versions that the client has, then the statement's own. */
  parameters: [Parameter, Buffer, Parameter, ...Parameter[]]
  holding: Holding
}

export interface Found {
  head: Head
  rows: RawRows
}

/**
 * Reads head and rows of an answer. Where there are replicas, one of them is asked for the rows and the
 * primary, at the same time, for the head: a replica's rows count only if they are of the version that
 * the primary has now. So a token that was revoked, or a connection that was deleted, is refused at once,
 * nobody is told of an earlier state, and a replica that lags costs a second read and nothing else.
 * @throws DatabaseUnavailable, TokenUnknown, TokenExpired or ConnectionNotFound
 */
export async function currentRows(db: Database, question: Question): Promise<Found> {
  const replica = db.replica(question.parameters[1])
  const found = replica && (await readFromReplica(db, replica, question))
  if (found) return found
  const rows = await db.read(question.statement, question.parameters, question.holding)
  return { head: takeHead(rows), rows }
}

/** The head of any answer, without its rows and its total. */
const heads = forEachCaller((kind) =>
  compile(`head by ${kind}`, sql`${connectionOfApp(kind).select(headColumns(sql`null`))}`),
)

/** @returns undefined where the replica has not what the primary has */
async function readFromReplica(
  db: Database,
  replica: Replica,
  { kind, statement, parameters, holding }: Question,
): Promise<Found | undefined> {
  const [there, here] = await Promise.allSettled([
    replica.read(statement, parameters, holding),
    db.read(heads[kind], parameters.slice(0, 3)),
  ])
  if (here.status === 'rejected') throw here.reason
  const current = takeHead(here.value)
  if (current.unmodified) return { head: current, rows: new RawRows() }
  if (there.status === 'rejected') {
    if (there.reason instanceof HostFailed) return undefined
    throw there.reason
  }
  const rows = there.value
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
