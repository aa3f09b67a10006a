import type { Readable } from 'node:stream'
import type { TObject } from '@sinclair/typebox'
import type { Holding } from '../database/answer-memory.ts'
import type { Database } from '../database/database.ts'
import type { Parameter, Statement } from '../database/statement.ts'
import { type Caller, type CallerKind, callerParameter, kindOf } from './calling-app.ts'
import { currentRows, type Question } from './current-rows.ts'
import { HEAD_COLUMNS, type Head } from './head.ts'
import { type Frame, jsonArray } from './json-array.ts'
import { compileRowWriter, type RowWriter } from './json-writer.ts'
import { replyStatements, type StatementParts } from './reply-statement.ts'

/** What every request says. */
export interface ConnectionFacts {
  caller: Caller
  /** SHA-256 of the connection's token. */
  connection: Buffer
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
 * @param values the parameters from $3 on
 * @param frame what stands around the rows
 */
export async function answer(
  db: Database,
  { statements, writer }: ReplyQuery,
  { caller, connection, knownVersions, holding }: ConnectionFacts,
  values: Parameter[],
  frame: (head: Head) => Frame,
): Promise<Reply> {
  const kind = kindOf(caller)
  const parameters: Question['parameters'] = [callerParameter(caller), connection, ...values]
  const question = { kind, statement: statements[kind], parameters, knownVersions, holding }
  const { head, rows } = await currentRows(db, question)
  if (rows === undefined) return { ...head, items: 0, body: undefined }
  const items = rows.count
  const body = jsonArray(rows, writer, frame(head), holding)
  return { ...head, items, body }
}
