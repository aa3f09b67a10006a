import { text } from 'node:stream/consumers'
import { type Command, InvalidArgumentError } from 'commander'
import { OperatorError } from '../../operator-error.ts'
import { connectionKey, isConnectionKey, tokenHash } from '../../postgres/tokens.ts'
import { examples, nonEmpty, type Run, SECONDS, shortText, wholeNumber } from '../command.ts'
import {
  type ConnectionFilter,
  connectionId,
  createConnections,
  listConnections,
  newToken,
  showConnection,
} from '../connections.ts'
import { findApp, type OperatorDatabase } from '../database.ts'
import {
  addCounts,
  DELETED_AT_ONCE,
  deleteConnection,
  deleteConnections,
  describeRows,
  NONE_DELETED,
} from '../deletion.ts'
import { UsageError } from '../errors.ts'
import { type Line, openInputs, readBlocks } from '../loading/source.ts'
import { escaped, pluralize, printable, progressOf, table } from '../output.ts'

type Stdout = (text: string) => Promise<boolean>

export function addConnectionCommands(program: Command, run: Run, stdout: Stdout): void {
  const connection = program.command('connection')
  addCreate(connection, run, stdout)
  addList(connection, run, stdout)
  addShow(connection, run)
  addDelete(connection, run)
}

interface CreateFlags {
  app: string
  tokenFile?: string
  label?: string
  externalId?: string
  stream?: string | true
}

function addCreate(connection: Command, run: Run, stdout: Stdout): void {
  connection
    .command('create')
    .description('create a connection and show its token, once; or many of them')
    .requiredOption('--app <name>', 'its app', nonEmpty)
    .option('--token-file <file>', 'file with its token; generated if absent', nonEmpty)
    .option('--label <text>', 'a name for people', shortText)
    .option('--external-id <id>', 'your id of it, unique in the app', shortText)
    .option(
      '--stream [file]',
      'create one for each line of JSON with label and externalId, both optional; default: -, standard input',
    )
    .addHelpText(
      'after',
      examples(
        'connection create --app my-app --label "Savings plan"',
        'connection create --app my-app --stream customers.ndjson > tokens.ndjson',
      ),
    )
    .action(async ({ app: name, tokenFile, label, externalId, stream }: CreateFlags) => {
      if (stream !== undefined) {
        if (tokenFile !== undefined || label !== undefined || externalId !== undefined)
          throw new UsageError('--stream reads each label and externalId from its lines.')
        const inputs = await openInputs([stream === true ? '-' : stream])
        return await run(async (database, notice) => {
          const app = await findApp(database.db, name)
          const lines = readBlocks(inputs, { signal: database.signal })
          const done = await createStream(database, { appId: app.id, lines, stdout })
          const failed = done.failed > 0 ? `, ${pluralize(done.failed, 'line')} failed` : ''
          notice(`${pluralize(done.created, 'connection')} created${failed}.`)
          return { json: done, failed: done.failed > 0 }
        })
      }
      const token = tokenFile === undefined ? newToken() : await readToken(tokenFile)
      await run(async ({ db }) => {
        const app = await findApp(db, name)
        const own = { token, label: label ?? null, externalId: externalId ?? null }
        const [created = { taken: '' }] = await createConnections(db, app.id, [own])
        if ('taken' in created) throw new OperatorError(`${takenBy(created.taken)}.`)
        const { id } = created
        const text = `Connection ${id} of ${name}. Its token is shown only now:\n${token}`
        return { json: { id, token, ...(externalId && { externalId }) }, text }
      })
    })
}

const takenBy = (id: string) => `The connection ${id} of this app has this external id already`

const CREATED_AT_ONCE = 1_000

/** Creates a connection for each line, and prints a result for each, after the commit. */
async function createStream(
  { db, signal }: OperatorDatabase,
  { appId, lines, stdout }: { appId: string; lines: ReturnType<typeof readBlocks>; stdout: Stdout },
) {
  const done = { created: 0, failed: 0 }
  const write = async (batch: ReturnType<typeof readNew>[]) => {
    const wanted = batch.flatMap(({ wanted }) => wanted ?? [])
    const created = await createConnections(db, appId, wanted)
    const results = batch.map(({ place, wanted, detail }) => {
      const made = wanted && created.shift()
      if (made && 'id' in made) {
        done.created += 1
        return { ...place, externalId: wanted.externalId, id: made.id, token: wanted.token }
      }
      done.failed += 1
      const problem = made ? { field: 'externalId', detail: takenBy(made.taken) } : { detail }
      return { ...place, errors: [problem] }
    })
    if (!(await stdout(results.map((result) => `${escaped(JSON.stringify(result))}\n`).join(''))))
      throw new OperatorError('The reader of the results has ended.')
  }
  for await (const block of lines) {
    let batch: ReturnType<typeof readNew>[] = []
    for (const line of block) {
      batch.push(readNew(line))
      if (batch.length < CREATED_AT_ONCE) continue
      await write(batch)
      batch = []
      if (signal.aborted) break
    }
    if (batch.length > 0) await write(batch)
  }
  return done
}

function readNew({ place, bytes, problem }: Line) {
  try {
    if (problem) throw new InvalidArgumentError(problem)
    const members: unknown = JSON.parse(String(bytes))
    if (typeof members !== 'object' || members === null || Array.isArray(members))
      throw new InvalidArgumentError('a JSON object is expected')
    const { label = null, externalId = null, ...others } = members as Record<string, unknown>
    const [unknown] = Object.keys(others)
    if (unknown !== undefined)
      throw new InvalidArgumentError(`there is no such field: ${unknown.slice(0, 60)}`)
    const text = (value: unknown) => {
      if (value === null) return null
      if (typeof value === 'string') return shortText(value)
      throw new InvalidArgumentError('label and externalId are texts')
    }
    const wanted = { token: newToken(), label: text(label), externalId: text(externalId) }
    return { place, wanted, detail: '' }
  } catch (error) {
    if (error instanceof InvalidArgumentError) return { place, detail: error.message }
    return { place, detail: `not valid JSON: ${(error as SyntaxError).message}` }
  }
}

function addList(connection: Command, run: Run, stdout: Stdout): void {
  const command = connection
    .command('list')
    .description('list the connections of an app in the order of their ids, without secrets')
    .requiredOption('--app <name>', 'the app', nonEmpty)
    .option('--external-id <id>', 'only the one with your id', nonEmpty)
    .option('--label <text>', 'only those with exactly this label', nonEmpty)
    .option(
      '--refreshed-before <time>',
      'only those without a refresh since this time: an age such as 2d or 12h, or 2025-03-14T15:00Z',
      timeBefore,
    )
    .option('--after <id>', 'only those after this id', key)
    .option('--limit <n>', 'at most n of them', wholeNumber)
    .addHelpText(
      'after',
      examples(
        'connection list --app my-app',
        'connection list --app my-app --refreshed-before 2d',
        'connection list --app my-app --limit 1000 --after 4611686018427387904',
      ),
    )
    .action(({ app: name, ...filter }: ConnectionFilter & { app: string }) =>
      run(async ({ db }) => {
        const app = await findApp(db, name)
        const { json } = command.optsWithGlobals<{ json?: boolean }>()
        let isFirst = true
        for await (const items of listConnections(db, app.id, filter)) {
          const text = json
            ? items.map((item) => escaped(JSON.stringify(item))).join()
            : printable(tableOf(items, isFirst))
          const start = json ? (isFirst ? '{"items":[' : ',') : ''
          if (!(await stdout(start + text + (json ? '' : '\n')))) return { json: {} }
          isFirst = false
        }
        if (isFirst)
          return { json: { items: [] }, text: `The app ${name} has no such connections.` }
        if (json) await stdout(']}\n')
        return { json: {} }
      }),
    )
}

type Item = Omit<Awaited<ReturnType<typeof showConnection>>, 'app'>

const HEADINGS = ['id', 'external id', 'label', 'portfolio', 'account', 'changed', 'refreshed']

/** The first page has the headings. Each page has its own widths of columns. */
function tableOf(items: Item[], hasHeadings: boolean): string {
  const rows = items.map((item) => [
    item.id,
    item.externalId,
    item.label,
    item.portfolioTransactions,
    item.accountTransactions,
    item.changedAt,
    item.refreshedAt,
  ])
  const text = table(HEADINGS, rows)
  return hasHeadings ? text : text.slice(text.indexOf('\n') + 1)
}

function key(value: string): string {
  if (isConnectionKey(value)) return value
  throw new InvalidArgumentError('It must be the id of a connection.')
}

function timeBefore(value: string): Date {
  const [, count = '', unit = ''] = /^([0-9]{1,6})([smhdw])$/.exec(value) ?? []
  const time = unit
    ? Date.now() - Number(count) * SECONDS[unit as keyof typeof SECONDS] * 1_000
    : Date.parse(value)
  if (Number.isFinite(time) && /^[0-9]/.test(value)) return new Date(time)
  throw new InvalidArgumentError(
    'Write an age such as 2d or 12h, or a time such as 2025-03-14T15:00Z.',
  )
}

function addShow(connection: Command, run: Run): void {
  connection
    .command('show')
    .description('show a connection, without secrets')
    .argument('[id]', 'its id; with --app, also your external id')
    .option('--token-file <file>', 'file with its token, instead of the id; - is standard input')
    .option('--app <name>', 'the app that it must belong to', nonEmpty)
    .addHelpText('after', examples('connection show 4611686018427387904'))
    .action(async (id: string | undefined, options: { tokenFile?: string; app?: string }) => {
      const reference = await readReference({ id, ...options })
      await run(async (database) => {
        const json = await showConnection(database.db, await findConnection(database, reference))
        return { json, text: `${json.app}\n${tableOf([json], true)}` }
      })
    })
}

interface DeleteFlags {
  tokenFile?: string
  app?: string
  file?: string
}

function addDelete(connection: Command, run: Run): void {
  connection
    .command('delete')
    .description('delete connections and all their rows, immediately and permanently')
    .argument(
      '[id]',
      'id of the connection, from `connection list`; with --app, also your external id',
    )
    .option('--token-file <file>', 'file with its token, instead of the id; - is standard input')
    .option(
      '--file <file>',
      'file with one id a line: several transactions, which a repetition continues',
    )
    .option('--app <name>', 'the app that it must belong to', nonEmpty)
    .addHelpText(
      'after',
      examples(
        'connection delete 4611686018427387904 --app my-app',
        'connection delete --token-file - < token.txt',
        'connection delete --app my-app --file ids.txt',
      ),
    )
    .action(async (id: string | undefined, { file, ...options }: DeleteFlags) => {
      if (file !== undefined && (id !== undefined || options.tokenFile !== undefined))
        throw new UsageError('Give the id of the connection, or a file with ids (--file).')
      if (file !== undefined) return await deleteFrom(file, run, options.app)
      const reference = await readReference({ id, ...options })
      await run(async (database) => {
        const json = await deleteConnection(database.db, await findConnection(database, reference))
        const text = `Connection ${json.id} of ${json.app} is deleted with ${describeRows(json)}.`
        return { json, text }
      })
    })
}

async function deleteFrom(file: string, run: Run, appName: string | undefined): Promise<void> {
  const inputs = await openInputs([file])
  await run(async ({ db, pool, signal }, notice) => {
    const app = appName === undefined ? undefined : await findApp(db, appName)
    const onProgress = progressOf(notice, 'connection', 'deleted')
    let deleted = NONE_DELETED
    let given = 0
    const remove = async (ids: Set<string>) => {
      signal.throwIfAborted()
      deleted = addCounts(deleted, await deleteConnections(db, [...ids].sort(byKey)))
      onProgress(deleted.connections)
    }
    for await (const block of readBlocks(inputs, { signal })) {
      let ids = new Set<string>()
      for (const { bytes } of block) {
        given += 1
        const query = async (text: string, values: unknown[]) =>
          (await pool.query(text, values)).rows
        const id = await connectionId(query, app?.id, String(bytes).trim())
        if (id !== undefined) ids.add(id)
        if (ids.size < DELETED_AT_ONCE) continue
        await remove(ids)
        ids = new Set()
      }
      await remove(ids)
    }
    const missing = given - deleted.connections
    const text =
      `${pluralize(deleted.connections, 'connection')} deleted with ${describeRows(deleted)}` +
      `${missing > 0 ? `; ${missing} of the ids had none` : ''}.`
    return { json: { ...deleted, missing }, text }
  })
}

/** The order of the triggers' locks prevents deadlocks. */
const byKey = (a: string, b: string) => (BigInt(a) < BigInt(b) ? -1 : 1)

interface ConnectionOptions {
  id?: string | undefined
  tokenFile?: string | undefined
  /** Token in the environment: used without `id` and `tokenFile`. */
  token?: string | undefined
  app?: string | undefined
}

type ConnectionReference = ({ id: string } | { token: string }) & { app?: string | undefined }

/** @throws UsageError unless there is either a valid id or a token */
export async function readReference(options: ConnectionOptions): Promise<ConnectionReference> {
  const { id, tokenFile, token, app } = options
  if (id !== undefined && tokenFile === undefined) {
    if (isConnectionKey(id) || app !== undefined) return { id, app }
    // The value may be a token, so the message must not contain it.
    throw new UsageError(
      'The id of a connection is a number: `connection list --app NAME` shows it. An external id needs ' +
        '--app. A token is read from a file: --token-file FILE.',
    )
  }
  if (tokenFile !== undefined && id === undefined) return { token: await readToken(tokenFile), app }
  if (token !== undefined && id === undefined) return { token, app }
  throw new UsageError('Give the id of the connection, or a file with its token (--token-file).')
}

/** Reads a token from a file. As an argument, it would reach npm's log, `ps` and the shell's history. */
async function readToken(path: string): Promise<string> {
  const [input] = await openInputs([path])
  const token = input ? (await text(input.chunks)).replace(/\r?\n$/, '') : ''
  if (token !== '') return token
  throw new OperatorError(`There is no token in ${input?.name}.`)
}

/**
 * Finds a connection by its id, external id or token. With `app`, it must belong to this app.
 * @returns its id
 * @throws OperatorError when there is none
 */
export async function findConnection(
  { db, pool }: OperatorDatabase,
  reference: ConnectionReference,
) {
  const app = reference.app === undefined ? undefined : await findApp(db, reference.app)
  const query = async (text: string, values: unknown[]) => (await pool.query(text, values)).rows
  const hash = 'token' in reference ? tokenHash(reference.token) : undefined
  const name = 'id' in reference ? reference.id : connectionKey(tokenHash(reference.token))
  const id = await connectionId(query, app?.id, name)
  const connection =
    id !== undefined &&
    (await db
      .selectFrom('connection')
      .select('id')
      .where('id', '=', id)
      .$if(hash !== undefined, (query) => query.where('token_hash', '=', hash ?? Buffer.alloc(0)))
      .executeTakeFirst())
  if (connection) return connection.id
  const none = app ? `The app ${app.name} has no connection` : 'There is no connection'
  throw new OperatorError(
    'id' in reference
      ? `${none} ${name}: \`connection list --app NAME\` shows those of an app.`
      : `${none} with this token.`,
  )
}
