import { randomInt } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { InvalidArgumentError } from 'commander'
import { type Kysely, sql } from 'kysely'
import { NotInDatabase, OperatorError } from '../../operator-error.ts'
import type { Parameter, Statement } from '../../postgres/statements.ts'
import type { Tables } from '../../postgres/tables.ts'
import { connectionKey, isConnectionKey, tokenHash } from '../../postgres/tokens.ts'
import { type Context, READER_ENDED, shortText } from '../command.ts'
import { DESCRIPTION, findConnection, findConnectionId } from '../connections.ts'
import { findApp } from '../database.ts'
import { deleteConnections, describeRows } from '../deletion.ts'
import { openInput } from '../inputs.ts'
import { isObject, parseJson } from '../loading/json.ts'
import { Problems } from '../loading/problems.ts'
import { type Line, readLines, type Source, untilAbort } from '../loading/source.ts'
import { escaped, pluralize, toJson } from '../output.ts'
import { table } from '../table.ts'

type Flags<Name extends string> = { app: string } & Partial<Record<Name, string>>

/** Creates one connection, or with --stream many. */
export async function create(
  context: Context,
  flags: Flags<'tokenFile' | 'label' | 'externalId'> & { stream?: string | true },
) {
  const app = await findApp(context.db, flags.app)
  const { tokenFile, label, externalId, stream } = flags
  if (stream === undefined) return await createOne(context, app, flags)
  const ofOne = [tokenFile, label, externalId]
  if (ofOne.some((flag) => flag !== undefined))
    throw new InvalidArgumentError('--stream reads each label and externalId from its lines.')
  return await createMany(context, app, stream === true ? '-' : stream)
}

type App = Awaited<ReturnType<typeof findApp>>

async function createOne(
  { db, print }: Context,
  app: App,
  { tokenFile, label, externalId }: Flags<'tokenFile' | 'label' | 'externalId'>,
) {
  const given = tokenFile === undefined ? undefined : await readToken(tokenFile)
  const own = newConnection({ label, externalId }, given)
  const { id, token } = own
  await db.transaction().execute(async (transaction) => {
    const ownerOf = await insertConnections(transaction, app.id, [own])
    if (ownerOf(own) !== id) throw new OperatorError(`${takenBy(ownerOf(own))}.`)
    const text = `Connection ${id} of ${app.name}. Its token is shown only now:\n${token}`
    // Before the commit: a token that nobody has read cannot be had again.
    const isRead = await print({ json: { id, token, externalId }, text })
    if (!isRead) throw new OperatorError(READER_ENDED)
  })
  return {}
}

const takenBy = (id: string) => `The connection ${id} of this app has this external id already`

/** Creates a connection for each line. Each block of lines is a transaction. */
async function createMany({ db, signal, stdout, notice }: Context, app: App, file: string) {
  const input = await openInput(file)
  let created = 0
  let failed = 0
  for await (const lines of untilAbort(readLines(input), signal)) {
    const results = await db.transaction().execute(async (transaction) => {
      const results = await createBlock(transaction, app.id, lines)
      // Before the commit, as in createOne().
      const isRead = await stdout(results.map((result) => `${toJson(result)}\n`).join(''))
      if (!isRead) throw new OperatorError(READER_ENDED)
      return results
    })
    const errors = results.filter((result) => 'errors' in result)
    failed += errors.length
    created += results.length - errors.length
  }
  const failures = failed > 0 ? `, ${pluralize(failed, 'line')} failed` : ''
  notice(`${pluralize(created, 'connection')} created${failures}.`)
  return { failed: failed > 0 }
}

/** Creates the connections of a block of lines. @returns the result of each line, in order */
async function createBlock(db: Kysely<Tables>, appId: string, lines: Iterable<Line>) {
  const parsed = Array.from(lines, (source) => ({ line: source.line, ...parseNew(source) }))
  const valid = parsed.flatMap(({ own }) => own ?? [])
  const ownerOf = await insertConnections(db, appId, valid)
  return parsed.map(({ line, own, detail }) => {
    if (own === undefined) return { line, errors: [{ detail }] }
    const { id, token, externalId } = own
    const owner = ownerOf(own)
    if (owner !== id) return { line, errors: [{ field: 'externalId', detail: takenBy(owner) }] }
    return { line, externalId, id, token }
  })
}

/** Parses a line of --stream. @returns a connection, or the reason why the line has none */
function parseNew(source: Line): { own?: NewConnection; detail?: string } {
  const problems = new Problems()
  const value = parseJson(source, problems)
  const [problem] = problems.shown
  if (problem?.field) return { detail: `${problem.field}: ${problem.detail}` }
  if (problem) return { detail: problem.detail }
  try {
    return { own: newConnection(checkNames(value)) }
  } catch (error) {
    if (error instanceof InvalidArgumentError) return { detail: error.message }
    throw error
  }
}

/** @throws InvalidArgumentError if the value of a line is not an object with label and externalId */
function checkNames(value: unknown): Names {
  if (!isObject(value)) throw new InvalidArgumentError('a JSON object is expected')
  for (const [field, name] of Object.entries(value)) {
    if (field !== 'label' && field !== 'externalId')
      throw new InvalidArgumentError(`there is no such field: ${field.slice(0, 60)}`)
    if (name === null) continue
    if (typeof name !== 'string') throw new InvalidArgumentError('label and externalId are texts')
    shortText(name)
  }
  return value
}

type Names = { label?: string | null | undefined; externalId?: string | null | undefined }

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

/** Deletes one connection, or with --file many. */
export async function remove(
  context: Context,
  name: string | undefined,
  { file, app }: Partial<Flags<'file'>>,
) {
  if (name !== undefined && file === undefined) return await removeOne(context, name, app)
  if (name === undefined && file !== undefined) return await removeMany(context, file, app)
  throw new InvalidArgumentError('Give the id of the connection, or a file with ids (--file).')
}

async function removeOne(context: Context, name: string, appName: string | undefined) {
  const { id, app, label } = await findConnection(context, name, appName)
  const { connections, ...rows } = await deleteConnections(context.db, [id])
  if (connections === 0) throw new OperatorError('The connection does not exist any more.')
  const text = `Connection ${id} of ${app} is deleted with ${describeRows(rows)}.`
  return { json: { id, app, label, ...rows }, text }
}

/** Deletes the connections of a file with one id a line. */
async function removeMany(context: Context, file: string, appName: string | undefined) {
  const { db } = context
  const input = await openInput(file)
  const app = appName === undefined ? undefined : await findApp(db, appName)
  const given: GivenIds = { count: 0, first: '' }
  const deleted = await deleteConnections(db, findIds(context, input, app, given))
  // A wrong file must not look like a deletion that is done.
  if (given.count > 0 && deleted.connections === 0) throw noneOf(given, input.name, app)
  const missing = given.count - deleted.connections
  const rest = missing > 0 ? `; ${missing} of the ids had none` : ''
  const text = `${pluralize(deleted.connections, 'connection')} deleted with ${describeRows(deleted)}${rest}.`
  return { json: { ...deleted, missing }, text }
}

/** The ids that a file had so far. */
type GivenIds = { count: number; first: string }

/** Finds the connections of the lines of a file, and counts the lines in `given`. */
async function* findIds(
  { pool, signal }: Context,
  input: Source,
  app: App | undefined,
  given: GivenIds,
): AsyncGenerator<string> {
  const query = async ({ text }: Statement, values: Parameter[]) =>
    (await pool.query(text, values)).rows
  for await (const block of untilAbort(readLines(input), signal))
    for (const line of block) {
      const name = line.text.trim()
      if (given.count === 0) given.first = name
      given.count += 1
      const id = await findConnectionId(query, app?.id, name)
      if (id !== undefined) yield id
    }
}

function noneOf({ count, first }: GivenIds, file: string, app: App | undefined): NotInDatabase {
  // Another text may be a token.
  const example = isConnectionKey(first) ? `, for example ${first}` : ''
  const owner = app ? ` of ${app.name}` : ''
  return new NotInDatabase(
    `None of the ${pluralize(count, 'id')} in ${escaped(file)} is that of a connection${owner}${example}. ` +
      'Nothing was deleted.',
  )
}
