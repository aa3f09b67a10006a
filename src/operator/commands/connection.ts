import { randomInt } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { InvalidArgumentError } from 'commander'
import { type Kysely, sql } from 'kysely'
import { NotInDatabase, OperatorError } from '../../operator-error.ts'
import type { Tables } from '../../postgres/tables.ts'
import { connectionKey, isConnectionKey, tokenHash } from '../../postgres/tokens.ts'
import { type Context, READER_ENDED, shortText } from '../command.ts'
import { DESCRIPTION, findConnection, findConnectionId } from '../connections.ts'
import { findApp } from '../database.ts'
import { deleteConnections, describeRows } from '../deletion.ts'
import { openInput } from '../inputs.ts'
import { isObject, parseJson } from '../loading/json.ts'
import { Problems } from '../loading/problems.ts'
import { type Line, readLines, untilAbort } from '../loading/source.ts'
import { escaped, pluralize, toJson } from '../output.ts'
import { table } from '../table.ts'

type Flags<Name extends string> = { app: string } & Partial<Record<Name, string>>

export async function create(
  context: Context,
  flags: Flags<'tokenFile' | 'label' | 'externalId'> & { stream?: string | true },
) {
  const { app: appName, tokenFile, label, externalId, stream } = flags
  const { db, print } = context
  const app = await findApp(db, appName)
  if (stream !== undefined) {
    if ((tokenFile ?? label ?? externalId) === undefined)
      return await createMany(context, app.id, stream === true ? '-' : stream)
    throw new InvalidArgumentError('--stream reads each label and externalId from its lines.')
  }
  const own = newConnection(flags, tokenFile && (await readToken(tokenFile)))
  const { id, token } = own
  await db.transaction().execute(async (transaction) => {
    const ownerOf = await insertConnections(transaction, app.id, [own])
    if (ownerOf(own) !== id) throw new OperatorError(`${takenBy(ownerOf(own))}.`)
    const text = `Connection ${id} of ${appName}. Its token is shown only now:\n${token}`
    // Before the commit: a token that nobody has read cannot be had again.
    if (!(await print({ json: { id, token, ...(externalId && { externalId }) }, text })))
      throw new OperatorError(READER_ENDED)
  })
  return {}
}

const takenBy = (id: string) => `The connection ${id} of this app has this external id already`

/** Creates a connection for each line. Each block of lines is a transaction. */
async function createMany({ db, signal, stdout, notice }: Context, appId: string, file: string) {
  const input = await openInput(file)
  const total = { created: 0, failed: 0 }
  for await (const lines of untilAbort(readLines(input), signal))
    await db.transaction().execute(async (transaction) => {
      const read = Array.from(lines, (line) => ({ line: line.line, ...parseNew(line) }))
      const valid = read.flatMap(({ own }) => own ?? [])
      const ownerOf = await insertConnections(transaction, appId, valid)
      const results = read.map(({ line, own, detail }) => {
        if (own === undefined) return { line, errors: [{ detail }] }
        const { id, token, externalId } = own
        if (ownerOf(own) === id) return { line, externalId, id, token }
        return { line, errors: [{ field: 'externalId', detail: takenBy(ownerOf(own)) }] }
      })
      for (const result of results) total['errors' in result ? 'failed' : 'created'] += 1
      if (!(await stdout(results.map((result) => `${toJson(result)}\n`).join(''))))
        throw new OperatorError(READER_ENDED)
    })
  const failed = total.failed > 0 ? `, ${pluralize(total.failed, 'line')} failed` : ''
  notice(`${pluralize(total.created, 'connection')} created${failed}.`)
  return { failed: total.failed > 0 }
}

function parseNew(source: Line): { own?: NewConnection; detail?: string } {
  const problems = new Problems()
  const line = parseJson(source, problems)
  const [problem] = problems.shown
  if (problem)
    return { detail: problem.field ? `${problem.field}: ${problem.detail}` : problem.detail }
  try {
    if (!isObject(line)) throw new InvalidArgumentError('a JSON object is expected')
    for (const [name, value] of Object.entries(line)) {
      if (name !== 'label' && name !== 'externalId')
        throw new InvalidArgumentError(`there is no such field: ${name.slice(0, 60)}`)
      if (typeof value === 'string') shortText(value)
      else if (value !== null) throw new InvalidArgumentError('label and externalId are texts')
    }
    return { own: newConnection(line) }
  } catch (error) {
    if (error instanceof InvalidArgumentError) return { detail: error.message }
    throw error
  }
}

type Names = { label?: string | null; externalId?: string | null }

function newConnection({ label = null, externalId = null }: Names, token = newToken()) {
  const hash = tokenHash(token)
  return { id: connectionKey(hash), hash, token, label, externalId }
}

type NewConnection = ReturnType<typeof newConnection>

/** Creates connections. @returns a function that finds the id of one, or of another one with the same external id */
async function insertConnections(db: Kysely<Tables>, appId: string, connections: NewConnection[]) {
  // On Citus, no index keeps external ids unique. Every role could hold an advisory lock instead.
  await sql`select from app where id = ${appId} for no key update`.execute(db)
  const names = connections.map(({ externalId }) => externalId)
  const { rows } = await sql<{ id: string; externalId: string }>`
    select id, external_id as "externalId" from connection
    where app_id = ${appId} and external_id = any(${names}::text[])`.execute(db)
  const owners = new Map<string | null, string>()
  for (const { id, externalId } of [...rows, ...connections])
    if (externalId !== null && !owners.has(externalId)) owners.set(externalId, id)
  const ownerOf = ({ id, externalId }: NewConnection) => owners.get(externalId) ?? id
  const added = connections.filter((own) => ownerOf(own) === own.id)
  const column = (name: keyof NewConnection) => added.map((own) => own[name])
  await sql`
    insert into connection (id, app_id, token_hash, label, external_id)
    select id, ${appId}::uuid, hash, label, name
    from unnest(${column('id')}::bigint[], ${column('hash')}::bytea[], ${column('label')}::text[],
      ${column('externalId')}::text[]) as n (id, hash, label, name)`.execute(db)
  return ownerOf
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** 22 characters have 131 bits: a person with the id or the ETag cannot guess the token. */
function newToken(): string {
  return Array.from({ length: 22 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

/** Reads a token from a file. As an argument, it would reach npm's log, `ps` and the shell's history. */
async function readToken(path: string): Promise<string> {
  const { name, chunks } = await openInput(path)
  const token = (await text(chunks)).replace(/\r?\n$/, '')
  if (token === '') throw new OperatorError(`There is no token in ${name}.`)
  return token
}

const PAGE = 5_000

/** Prints pages, so that the memory is bounded. */
export async function list(
  { db, isJson, stdout }: Context,
  flags: Flags<'externalId' | 'label' | 'after'> & { refreshedBefore?: Date; limit?: number },
) {
  const { app: name, externalId, label, refreshedBefore, limit = Number.MAX_SAFE_INTEGER } = flags
  const { id: appId } = await findApp(db, name)
  let { after } = flags
  let separator = '{"items":['
  for (let left = limit; left > 0; left -= PAGE) {
    const { rows } = await sql<{ id: string }>`
      select ${DESCRIPTION} from connection
      where app_id = ${appId} and (${after}::bigint is null or id > ${after})
        and (${externalId}::text is null or external_id = ${externalId})
        and (${label}::text is null or label = ${label})
        and coalesce(refreshed_at < ${refreshedBefore}, true)
      order by id limit ${Math.min(left, PAGE)}`.execute(db)
    after = rows.at(-1)?.id
    if (after === undefined) break
    const items = isJson ? separator + rows.map(toJson).join() : `${table(rows)}\n`
    if (!(await stdout(items))) return {}
    separator = ','
  }
  if (separator !== ',')
    return { json: { items: [] }, text: `The app ${name} has no such connections.` }
  if (isJson) await stdout(']}\n')
  return {}
}

export async function show(context: Context, name: string, { app }: { app?: string }) {
  const json = await findConnection(context, name, app)
  return { json, text: table([json]) }
}

export async function remove(
  context: Context,
  name: string | undefined,
  { file, app: appName }: Partial<Flags<'file'>>,
) {
  const { db, pool, signal } = context
  if (name !== undefined && file === undefined) {
    const { id, app, label } = await findConnection(context, name, appName)
    const { connections, ...rows } = await deleteConnections(db, [id])
    if (connections === 0) throw new OperatorError('The connection does not exist any more.')
    const text = `Connection ${id} of ${app} is deleted with ${describeRows(rows)}.`
    return { json: { id, app, label, ...rows }, text }
  }
  if (name !== undefined || file === undefined)
    throw new InvalidArgumentError('Give the id of the connection, or a file with ids (--file).')
  const input = await openInput(file)
  const app = appName === undefined ? undefined : await findApp(db, appName)
  const query = async (text: string, values: unknown[]) => (await pool.query(text, values)).rows
  let given = 0
  let first = ''
  async function* ids() {
    for await (const block of untilAbort(readLines(input), signal))
      for (const { text } of block) {
        given += 1
        first ||= text.trim()
        const id = await findConnectionId(query, app?.id, text.trim())
        if (id !== undefined) yield id
      }
  }
  const deleted = await deleteConnections(db, ids())
  const missing = given - deleted.connections
  // A wrong file must not look like a deletion that is done.
  if (given > 0 && deleted.connections === 0) {
    // Another text may be a token.
    const example = isConnectionKey(first) ? `, for example ${first}` : ''
    const owner = app ? ` of ${app.name}` : ''
    throw new NotInDatabase(
      `None of the ${pluralize(given, 'id')} in ${escaped(input.name)} is that of a connection${owner}${example}. ` +
        'Nothing was deleted.',
    )
  }
  const rest = missing > 0 ? `; ${missing} of the ids had none` : ''
  const text = `${pluralize(deleted.connections, 'connection')} deleted with ${describeRows(deleted)}${rest}.`
  return { json: { ...deleted, missing }, text }
}
