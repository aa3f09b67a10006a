import type { Readable } from 'node:stream'
import type { Static, TObject } from '@sinclair/typebox'
import { type Expression, sql } from 'kysely'
import { type Flat, flatFields } from '../json/column-map.ts'
import { shortWork } from '../json/fair-scheduler.ts'
import { type Frame, jsonArray } from '../json/response-body.ts'
import { compileRowWriter, type RowWriter } from '../json/row-writer.ts'
import type { Database } from '../postgres/database.ts'
import { HostFailed } from '../postgres/errors.ts'
import type { Replica } from '../postgres/replicas.ts'
import type { Holding } from '../postgres/response-memory.ts'
import type { Parameter, Statement } from '../postgres/statements.ts'
import { compile } from '../postgres/statements.ts'
import type { RawRows } from '../postgres/wire/raw-rows.ts'
import { type Caller, type CallerKind, callerParameter, forEachCaller, kindOf } from './caller.ts'
import {
  connectionOfApp,
  HEAD_COLUMNS,
  type Head,
  type HeadColumns,
  headColumns,
  takeHead,
} from './connection.ts'

export interface StatementParts<Item extends TObject> {
  /** Unique among the statements of the service. */
  name: string
  item: Item
  /** The head's columns, and whatever else of the look-up the rows refer to. */
  head: (kind: CallerKind) => Expression<HeadColumns>
  /** The fields of `item` by their names; the SELECT may refer to `head`. */
  rows: Expression<Flat<Static<Item>>>
}

/**
 * Puts head and rows together into one statement, for each way in which a caller can be known. The head
 * is computed once, and comes first; the rows follow it, with nulls in the head's columns, so that what
 * is said once per answer is not sent a thousand times.
 */
function replyStatements<Item extends TObject>(
  parts: StatementParts<Item>,
): Record<CallerKind, Statement> {
  const fields = flatFields(parts.item).map((field) => sql.id('rows', field.name))
  const nothing = sql.join(fields.map(() => sql`null`))
  const head = sql.join(HEAD_COLUMNS.map((column) => sql.ref(`head.${column}`)))
  const noHead = sql.join(HEAD_COLUMNS.map(() => sql`null`))
  return forEachCaller((kind) =>
    compile(
      `${parts.name} by ${kind}`,
      sql`with head as materialized ${parts.head(kind)}
        select ${head}, ${nothing} from head
        union all
        select ${noHead}, ${sql.join(fields)} from head cross join lateral ${parts.rows} as rows`,
    ),
  )
}

/** One question: the statement of an answer, and its parameters. */
export interface Question {
  kind: CallerKind
  statement: Statement
  /** The caller and the connection, then the statement's own. */
  parameters: [Parameter, Buffer, string, ...Parameter[]]
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
 * @throws DatabaseUnavailable, InvalidToken, ExpiredToken or ConnectionNotFound
 */
async function currentRows(db: Database, question: Question): Promise<Found> {
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
  return takeHead(await db.read(heads[kind], parameters.slice(0, 3)))
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

/** What every request says. */
export interface ConnectionFacts {
  caller: Caller
  /** SHA-256 of the connection's token, and the key of the connection that is taken from it. */
  connection: Buffer
  connectionKey: string
  /** The versions of the data that the client has; `*` stands for any. */
  knownVersions: string[]
  /** Where the memory that the answer takes is counted. */
  holding: Holding
}

/** An answer as it goes out, but for HTTP. */
export interface Reply extends Head {
  /** JSON, or undefined where the client has this version already. */
  body: Buffer | Readable | undefined
  /** Rows in the body. */
  items: number
}

export interface ReplyQuery {
  statements: Record<CallerKind, Statement>
  writer: RowWriter
}

/** Compiles, once, the statements of a query and the writer of their rows. */
export function replyQuery<Item extends TObject>(parts: StatementParts<Item>): ReplyQuery {
  return {
    statements: replyStatements(parts),
    writer: compileRowWriter(parts.item, HEAD_COLUMNS.length),
  }
}

/**
 * Reads what the client does not have yet, in one snapshot, and writes it as JSON.
 * @param values the parameters from $4 on
 * @param frame what stands around the rows
 */
export async function answer(
  db: Database,
  { statements, writer }: ReplyQuery,
  { caller, connection, connectionKey, knownVersions, holding }: ConnectionFacts,
  values: Parameter[],
  frame: (head: Head) => Frame,
): Promise<Reply> {
  const kind = kindOf(caller)
  const parameters: Question['parameters'] = [
    callerParameter(caller),
    connection,
    connectionKey,
    ...values,
  ]
  const question = { kind, statement: statements[kind], parameters, knownVersions, holding }
  const { head, rows } = await currentRows(db, question)
  if (rows === undefined) return { ...head, items: 0, body: undefined }
  const items = rows.count
  const body = jsonArray(rows, writer, frame(head), holding)
  return { ...head, items, body }
}
