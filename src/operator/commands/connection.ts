import { text } from 'node:stream/consumers'
import { type Command, InvalidArgumentError } from 'commander'
import { OperatorError } from '../../operator-error.ts'
import { isConnectionKey } from '../../postgres/tokens.ts'
import {
  examples,
  type Io,
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
  showConnection,
} from '../connections.ts'
import { findApp, type OperatorDatabase } from '../database.ts'
import {
  addCounts,
  DELETED_AT_ONCE,
  deleteConnections,
  describeRows,
  NONE_DELETED,
} from '../deletion.ts'
import { UsageError } from '../errors.ts'
import { jsonProblem } from '../loading/row-reader.ts'
import { type Input, type Line, openInputs, readLines, untilAbort } from '../loading/source.ts'
import { pluralize, printable, progressOf, table, toJson } from '../output.ts'

export function addCommands(program: Command, run: Run, { stdout }: Io): void {
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

function addCreate(connection: Command, run: Run, stdout: Io['stdout']): void {
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
      if (stream !== undefined && (tokenFile ?? label ?? externalId) !== undefined)
        throw new UsageError('--stream reads each label and externalId from its lines.')
      if (stream !== undefined) {
        const [input] = (await openInputs([stream === true ? '-' : stream])) as [Input]
        await run(async ({ db, signal }, notice) => {
          const { id } = await findApp(db, name)
          const json = { created: 0, failed: 0 }
          for await (const lines of untilAbort(readLines(input), signal)) {
            const { created, failed } = await createFrom([...lines], db, id, stdout)
            json.created += created
            json.failed += failed
          }
          const failed = json.failed > 0 ? `, ${pluralize(json.failed, 'line')} failed` : ''
          notice(`${pluralize(json.created, 'connection')} created${failed}.`)
          return { json, failed: json.failed > 0 }
        })
        return
      }
      const token = tokenFile === undefined ? newToken() : await readToken(tokenFile)
      await run(async ({ db }, _notice, _config, print) => {
        const app = await findApp(db, name)
        const own = { token, label: label ?? null, externalId: externalId ?? null }
        await createConnections(db, app.id, [own], async ([created]) => {
          const { id, taken = '' } = created as Created
          if (id === undefined) throw new OperatorError(`${takenBy(taken)}.`)
          const text = `Connection ${id} of ${name}. Its token is shown only now:\n${token}`
          await print({ json: { id, token, ...(externalId && { externalId }) }, text })
        })
        return { json: {} }
      })
    })
}

const takenBy = (id: string) => `The connection ${id} of this app has this external id already`

/** Creates a connection for each line, in one transaction. Writes the results of the lines before its commit. */
async function createFrom(
  lines: Line[],
  db: OperatorDatabase['db'],
  appId: string,
  stdout: Io['stdout'],
) {
  const read = lines.map(readNew)
  const valid = read.filter((line) => 'token' in line)
  let failed = 0
  await createConnections(db, appId, valid, async (created) => {
    const results = read.map((line, index) => {
      const place = { line: lines[index]?.line }
      if ('detail' in line) return { ...place, errors: [line] }
      const { externalId, token } = line
      const { id, taken = '' } = created.shift() as Created
      if (id !== undefined) return { ...place, externalId, id, token }
      return { ...place, errors: [{ field: 'externalId', detail: takenBy(taken) }] }
    })
    failed = results.filter((result) => 'errors' in result).length
    const isRead = await stdout(results.map((result) => `${toJson(result)}\n`).join(''))
    if (!isRead) throw new OperatorError('The reader of the results has ended.')
  })
  return { created: lines.length - failed, failed }
}

function readNew({ text, problem }: Line): NewConnection | { detail: string } {
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
    return { label: null, externalId: null, ...line, token: newToken() }
  } catch (error) {
    if (error instanceof InvalidArgumentError) return { detail: error.message }
    return { detail: `not valid JSON: ${jsonProblem(text, error as Error)}` }
  }
}

function addList(connection: Command, run: Run, stdout: Io['stdout']): void {
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
    .option('--limit <n>', 'at most n of them', wholeNumber(1, 1e9))
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
            ? (isFirst ? '{"items":[' : ',') + items.map((item) => toJson(item)).join()
            : `${printable(tableOf(items, isFirst))}\n`
          if (!(await stdout(text))) return { json: {} }
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
  const seconds = secondsOf(value)
  const time = Number.isNaN(seconds) ? Date.parse(value) : Date.now() - seconds * 1_000
  if (Number.isFinite(time) && /^[0-9]/.test(value)) return new Date(time)
  throw new InvalidArgumentError(
    'Write an age such as 2d or 12h, or a time such as 2025-03-14T15:00Z.',
  )
}

function addShow(connection: Command, run: Run): void {
  connection
    .command('show')
    .description('show a connection, without secrets')
    .argument('<id>', 'its id; with --app, also your external id')
    .option('--app <name>', 'the app that it must belong to', nonEmpty)
    .addHelpText('after', examples('connection show 4611686018427387904'))
    .action((name: string, { app }: { app?: string }) =>
      run(async (database) => {
        const json = await showConnection(database.db, await findConnection(database, name, app))
        return { json, text: `${json.app}\n${tableOf([json], true)}` }
      }),
    )
}

function addDelete(connection: Command, run: Run): void {
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
      if ((file === undefined) === (name === undefined))
        throw new UsageError('Give the id of the connection, or a file with ids (--file).')
      if (file !== undefined) return await deleteFrom(file, run, app)
      await run(async (database) => {
        const id = await findConnection(database, name ?? '', app)
        const { app: owner, label } = await showConnection(database.db, id)
        const { connections, ...rows } = await deleteConnections(database.db, [id])
        if (connections === 0) throw missingConnection()
        const text = `Connection ${id} of ${owner} is deleted with ${describeRows(rows)}.`
        return { json: { id, app: owner, label, ...rows }, text }
      })
    })
}

async function deleteFrom(file: string, run: Run, appName: string | undefined): Promise<void> {
  const [input] = (await openInputs([file])) as [Input]
  await run(async ({ db, pool, signal }, notice) => {
    const app = appName === undefined ? undefined : await findApp(db, appName)
    const query = async (text: string, values: unknown[]) => (await pool.query(text, values)).rows
    const onProgress = progressOf(notice, 'deleted')
    let deleted = NONE_DELETED
    let given = 0
    for await (const block of untilAbort(readLines(input), signal)) {
      const lines = Array.from(block, ({ text }) => text.trim())
      given += lines.length
      while (lines.length > 0) {
        signal.throwIfAborted()
        const ids = new Set<string>()
        for (const line of lines.splice(0, DELETED_AT_ONCE)) {
          const id = await connectionId(query, app?.id, line)
          if (id !== undefined) ids.add(id)
        }
        deleted = addCounts(deleted, await deleteConnections(db, [...ids].sort(byKey)))
        onProgress(deleted.connections)
      }
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

/** Reads a token from a file. As an argument, it would reach npm's log, `ps` and the shell's history. */
async function readToken(path: string): Promise<string> {
  const [input] = await openInputs([path])
  const token = input ? (await text(input.chunks)).replace(/\r?\n$/, '') : ''
  if (token !== '') return token
  throw new OperatorError(`There is no token in ${input?.name}.`)
}
