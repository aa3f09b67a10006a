import { createHash } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import type { Tables } from '../../../src/postgres/tables.ts'
import { addCaller, type Caller } from '../../support/rows.ts'

/** What is asked, and what has to be answered, to the byte. */
export interface Known {
  path: string
  token: string
  /** A tag of the form that its own has, of a version that is none of its own. */
  staleTag: string
  /** Of the body: its SHA-256, and its length in bytes. */
  digest: string
  bytes: number
}

/** What is asked. */
export type Question = Pick<Known, 'path' | 'token'>

/** Some apps, each with a connection that has so many rows of each kind. */
export async function fillWorld(db: Kysely<Tables>, rows: number): Promise<Caller[]> {
  const callers: Caller[] = []
  for (let app = 0; app < 3; app += 1) {
    const caller = await addCaller(db)
    await fillConnection(db, caller.connection.id, rows)
    callers.push(caller)
  }
  return callers
}

async function fillConnection(db: Kysely<Tables>, id: string, rows: number): Promise<void> {
  const days = sql`date '2020-01-01' + n / 10`
  const text = sql`'row ' || n || repeat(' of the truth', n % 20)`
  const numbers = sql`generate_series(1, ${sql.lit(rows)}) n`
  await sql`insert into portfolio_transaction
    (connection_id, transaction_id, portfolio_id, type, titles, amount, currency, description, operation_date_day)
    select ${id}::bigint, gen_random_uuid(), gen_random_uuid(), 'BUY', n / 7.0, n * 1.25, 'EUR', ${text}, ${days}
    from ${numbers}`.execute(db)
  await sql`insert into account_transaction
    (connection_id, movement_id, account_id, type, amount, description, operation_date_day)
    select ${id}::bigint, gen_random_uuid(), gen_random_uuid(), 'DEPOSIT', n * 0.01, ${text}, ${days}
    from ${numbers}`.execute(db)
}

/** Light questions of all kinds and, with `heavy`, some for whole lists. */
export function questionsOf(callers: Caller[]): Question[] {
  return callers.flatMap(({ connection, token }) =>
    [
      `${connection.portfolio}?limit=20`,
      `${connection.portfolio}?from=2020-02-01&to=2020-02-20`,
      `${connection.portfolio}?limit=500&page=1`,
      connection.portfolio,
      `${connection.account}?limit=100&page=3`,
      `${connection.account}?limit=10000`,
      connection.orders,
    ].map((path) => ({ path, token })),
  )
}

/** Asks everything once, while all is well. */
export async function learn(url: string, questions: Question[]): Promise<Known[]> {
  const known: Known[] = []
  for (const { path, token } of questions) {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(url + path, { headers })
    if (answer.status !== 200) throw new Error(`${path}: ${await answer.text()}`)
    const staleTag = String(answer.headers.get('etag')).replace('"', '"0')
    known.push({ path, token, staleTag, ...(await digestOf(answer.body ?? [])) })
  }
  return known
}

/** Asks once, and tells what is wrong with the answer, unless it is the truth. */
export async function faultOf(url: string, wanted: Known): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${wanted.token}` }
  const answer = await fetch(url + wanted.path, { headers })
  const { digest, bytes } = await digestOf(answer.body ?? [])
  if (answer.status === 200 && digest === wanted.digest) return undefined
  return `${answer.status}, ${bytes} bytes that are not the truth`
}

/** So that many large answers can be compared at once without being held. */
export async function digestOf(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of body) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { digest: hash.digest('hex'), bytes }
}

/** A connection with 10,000 rows, each with a text of so many characters, and the question for them all. */
export async function fillPage(db: Kysely<Tables>, characters: number): Promise<Question> {
  const { connection, token } = await addCaller(db)
  await sql`insert into account_transaction
    (connection_id, movement_id, account_id, type, amount, description, operation_date_day)
    select ${connection.id}::bigint, gen_random_uuid(), gen_random_uuid(), 'DEPOSIT', n,
      repeat('x', ${sql.lit(characters)}), '2020-01-01'
    from generate_series(1, 10000) n`.execute(db)
  return { path: `${connection.account}?limit=10000`, token }
}
