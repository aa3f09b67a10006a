import { text } from 'node:stream/consumers'
import { type Command, InvalidArgumentError } from 'commander'
import { OperatorError } from '../../operator-error.ts'
import { isConnectionKey } from '../../postgres/tokens.ts'
import {
  type Context,
  examples,
  nonEmpty,
  type Run,
  secondsOf,
  shortText,
  wholeNumber,
} from '../command.ts'
import {
  type ConnectionFilter,
  type Created,
  connectionId,
  createConnections,
  findConnection,
  listConnections,
  missingConnection,
  type NewConnection,
  newToken,
} from '../connections.ts'
import { findApp } from '../database.ts'
import { DELETED_AT_ONCE, deleteBlocks, deleteConnections, describeRows } from '../deletion.ts'
import { UsageError } from '../errors.ts'
import { type Line, openInput, readLines, untilAbort } from '../loading/source.ts'
import { pluralize, printable, toJson } from '../output.ts'
import { table } from '../table.ts'

interface CreateFlags {
  app: string
  tokenFile?: string
  label?: string
  externalId?: string
  stream?: string | true
}

export function defineConnection(connection: Command, run: Run): void {
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
    .action(async ({ app, tokenFile, label, externalId, stream }: CreateFlags) => {
      if (stream === undefined) {
        const token = tokenFile === undefined ? newToken() : await readToken(tokenFile)
        const own = { token, label: label ?? null, externalId: externalId ?? null }
        await run((context) => createOne(context, app, own))
      } else if ((tokenFile ?? label ?? externalId) === undefined)
        await run((context) => createMany(context, app, stream === true ? '-' : stream))
      else throw new UsageError('--stream reads each label and externalId from its lines.')
    })
  connection
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
    .option('--limit <n>', 'at most n of them', wholeNumber(1, 1e9))
    .addHelpText(
      'after',
      examples(
        'connection list --app my-app',
        'connection list --app my-app --refreshed-before 2d',
        'connection list --app my-app --limit 1000 --after 4611686018427387904',
      ),
    )
    .action(({ app, ...filter }: ConnectionFilter & { app: string }) =>
      run((context) => list(context, app, filter)),
    )
  connection
    .command('show')
    .description('show a connection, without secrets')
    .argument('<id>', 'its id; with --app, also your external id')
    .option('--app <name>', 'the app that it must belong to', nonEmpty)
    .addHelpText('after', examples('connection show 4611686018427387904'))
    .action((name: string, { app }: { app?: string }) =>
      run(async (database) => {
        const json = await findConnection(database, name, app)
        return { json, text: `${json.app}\n${tableOf([json], true)}` }
      }),
    )
  connection
    .command('delete')
    .description('delete connections and all their rows, immediately and permanently')
    .argument(
      '[id]',
      'id of the connection, from `connection list`; with --app, also your external id',
    )
    .option(
      '--file <file>',
      'file with one id a line: several transactions, which a repetition continues',
    )
    .option('--app <name>', 'the app that it must belong to', nonEmpty)
    .addHelpText(
      'after',
      examples(
        'connection delete 4611686018427387904 --app my-app',
        'connection delete --app my-app --file ids.txt',
      ),
    )
    .action(async (name: string | undefined, { file, app }: { file?: string; app?: string }) => {
      if (file !== undefined && name === undefined)
        await run((context) => deleteFrom(context, file, app))
      else if (file === undefined && name !== undefined)
        await run((context) => deleteOne(context, name, app))
      else throw new UsageError('Give the id of the connection, or a file with ids (--file).')
    })
}

/** Reads a token from a file. As an argument, it would reach npm's log, `ps` and the shell's history. */
async function readToken(path: string): Promise<string> {
  const { name, chunks } = await openInput(path)
  const token = (await text(chunks)).replace(/\r?\n$/, '')
  if (token === '') throw new OperatorError(`There is no token in ${name}.`)
  return token
}

const takenBy = (id: string) => `The connection ${id} of this app has this external id already`

async function createOne({ db, print }: Context, appName: string, own: NewConnection) {
  const { token, externalId } = own
  const app = await findApp(db, appName)
  await createConnections(db, app.id, [own], async ([created]) => {
    const { id, isTaken } = created as Created
    if (isTaken) throw new OperatorError(`${takenBy(id)}.`)
    const text = `Connection ${id} of ${appName}. Its token is shown only now:\n${token}`
    await print({ json: { id, token, ...(externalId && { externalId }) }, text })
  })
  return {}
}

/** Creates a connection for each line. Each block of lines is a transaction. */
async function createMany({ db, signal, stdout, notice }: Context, appName: string, file: string) {
  const input = await openInput(file)
  const { id: appId } = await findApp(db, appName)
  const total = { created: 0, failed: 0 }
  for await (const lines of untilAbort(readLines(input), signal)) {
    const read = Array.from(lines, ({ line, ...rest }) => ({ line, ...readNew(rest) }))
    const valid = read.flatMap(({ own }) => own ?? [])
    await createConnections(db, appId, valid, async (created) => {
      const results = read.map(({ line, own, detail }) => {
        if (own === undefined) return { line, errors: [{ detail }] }
        const { id, isTaken } = created.shift() as Created
        if (isTaken) return { line, errors: [{ field: 'externalId', detail: takenBy(id) }] }
        return { line, externalId: own.externalId, id, token: own.token }
      })
      for (const result of results) total['errors' in result ? 'failed' : 'created'] += 1
      const isRead = await stdout(results.map((result) => `${toJson(result)}\n`).join(''))
      if (!isRead) throw new OperatorError('The reader of the results has ended.')
    })
  }
  const failed = total.failed > 0 ? `, ${pluralize(total.failed, 'line')} failed` : ''
  notice(`${pluralize(total.created, 'connection')} created${failed}.`)
  return { failed: total.failed > 0 }
}

function readNew({ text, problem }: Omit<Line, 'line'>): { own?: NewConnection; detail?: string } {
  try {
    if (problem) throw new InvalidArgumentError(problem)
    const line: unknown = JSON.parse(text)
    if (typeof line !== 'object' || line === null || Array.isArray(line))
      throw new InvalidArgumentError('a JSON object is expected')
    for (const [name, value] of Object.entries(line)) {
      if (name !== 'label' && name !== 'externalId')
        throw new InvalidArgumentError(`there is no such field: ${name.slice(0, 60)}`)
      if (typeof value === 'string') shortText(value)
      else if (value !== null) throw new InvalidArgumentError('label and externalId are texts')
    }
    return { own: { label: null, externalId: null, ...line, token: newToken() } }
  } catch (error) {
    if (error instanceof InvalidArgumentError) return { detail: error.message }
    return { detail: `not valid JSON: ${(error as Error).message}` }
  }
}

async function list({ db, isJson, stdout }: Context, appName: string, filter: ConnectionFilter) {
  const { id } = await findApp(db, appName)
  let isFirst = true
  for await (const items of listConnections(db, id, filter)) {
    const text = isJson
      ? (isFirst ? '{"items":[' : ',') + items.map((item) => toJson(item)).join()
      : `${printable(tableOf(items, isFirst))}\n`
    if (!(await stdout(text))) return {}
    isFirst = false
  }
  if (isFirst) return { json: { items: [] }, text: `The app ${appName} has no such connections.` }
  if (isJson) await stdout(']}\n')
  return {}
}

type Item = Omit<Awaited<ReturnType<typeof findConnection>>, 'app'>

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
  const seconds = secondsOf(value)
  const time = Number.isNaN(seconds) ? Date.parse(value) : Date.now() - seconds * 1_000
  if (Number.isFinite(time) && /^[0-9]/.test(value)) return new Date(time)
  throw new InvalidArgumentError(
    'Write an age such as 2d or 12h, or a time such as 2025-03-14T15:00Z.',
  )
}

async function deleteOne(database: Context, name: string, appName?: string) {
  const { id, app, label } = await findConnection(database, name, appName)
  const { connections, ...rows } = await deleteConnections(database.db, [id])
  if (connections === 0) throw missingConnection()
  const text = `Connection ${id} of ${app} is deleted with ${describeRows(rows)}.`
  return { json: { id, app, label, ...rows }, text }
}

async function deleteFrom({ db, pool, signal, show }: Context, file: string, appName?: string) {
  const input = await openInput(file)
  const app = appName === undefined ? undefined : await findApp(db, appName)
  const query = async (text: string, values: unknown[]) => (await pool.query(text, values)).rows
  let given = 0
  async function* blocks() {
    for await (const block of untilAbort(readLines(input), signal)) {
      const ids: string[] = []
      for (const { text } of block) {
        given += 1
        const id = await connectionId(query, app?.id, text.trim())
        if (id !== undefined && ids.push(id) === DELETED_AT_ONCE) yield ids.splice(0)
      }
      yield ids
    }
  }
  const deleted = await deleteBlocks(db, blocks(), show)
  const missing = given - deleted.connections
  const text =
    `${pluralize(deleted.connections, 'connection')} deleted with ${describeRows(deleted)}` +
    `${missing > 0 ? `; ${missing} of the ids had none` : ''}.`
  return { json: { ...deleted, missing }, text }
}
