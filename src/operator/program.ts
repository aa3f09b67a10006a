import { type Command, InvalidArgumentError, Option } from 'commander'
import { isConnectionKey } from '../postgres/tokens.ts'
import { isUuid } from '../schemas/formats.ts'
import { lists } from '../schemas/lists.ts'
import { type Action, accepting, nonEmpty, shortText } from './command.ts'
import { propertyOf } from './loading/row-types.ts'

/** A command with the arguments of the command line. */
export interface Call {
  /** Loads the module of the action: a call needs only one of them. */
  load: () => Promise<Action>
  /** True if migrations may be missing. */
  acceptsAnySchema: boolean
  command: Command
  args: unknown[]
}

/** Time in which an operator can rotate a token, in seconds. */
const TWO_WEEKS = 14 * 86_400

const maintenance = () => import('./commands/maintenance.ts')
const app = () => import('./commands/app.ts')
const token = () => import('./commands/token.ts')
const connection = () => import('./commands/connection.ts')
const imports = () => import('./commands/import.ts')
const refresh = () => import('./commands/refresh.ts')

/** Adds all commands to the program. Their arguments are checked here, their combinations by the actions. */
export function defineCommands(program: Command, run: (call: Call) => Promise<void>): void {
  /** Adds a command. @param examples arguments of calls */
  const add = (
    group: Command,
    name: string,
    load: Call['load'],
    examples = [''],
    acceptsAnySchema = false,
  ): Command => {
    const command = group.command(name)
    command.action(async (...args) => await run({ load, acceptsAnySchema, command, args }))
    const calls = examples.map((example) => `  ${callOf(command)} ${example}`.trimEnd())
    return command.addHelpText('after', `\nFor example:\n${calls.join('\n')}\n`)
  }
  add(program, 'migrate', async () => (await maintenance()).migrateSchema, [''], true).description(
    'update the schema and the role of the service (see SERVICE_DATABASE_PASSWORD)',
  )
  add(program, 'seed', async () => (await maintenance()).seedDatabase).description(
    'add the sample data, with its public tokens, to a database without other apps',
  )
  const demo = program.command('demo').description('the sample data')
  add(demo, 'advance', async () => (await maintenance()).advanceDemo, ['', '--days 10'])
    .description('move the sample data by some weekdays: add, correct and cancel rows')
    .option('--days <n>', 'number of weekdays, at most 366', wholeNumber(1, 366), 1)
  add(program, 'verify', async () => (await maintenance()).verify, ['', '--repair', '--hardened'])
    .description('compare all rows with the row counts and change numbers, which the API uses')
    .option('--repair', 'count the rows again in connections whose row counts are wrong')
    .option(
      '--hardened',
      'also find rights of PUBLIC that docs/reference/public-rights.sql revokes',
    )
  add(program, 'prune', async () => (await maintenance()).prune, ['', '--days 800'])
    .description('delete what only old cursors need; they return 410')
    .option('--days <n>', 'keep removals and versions of n days', wholeNumber(0, 365_000), 400)
    .option('--yes', 'accept less than the 400 days that the API guarantees')
  const apps = program.command('app').description('apps: programs that call the service')
  add(apps, 'create', async () => (await app()).create, ['my-app'])
    .description('register an app')
    .argument('<name>', 'unique name of the app', shortText)
    .option('--client-id <id>', 'its client id at the identity provider', shortText)
  add(apps, 'list', async () => (await app()).list).description('list all apps')
  add(apps, 'set-client-id', async () => (await app()).setClientId, [
    'my-app 8f14e45f-client',
    'my-app --none',
  ])
    .description('replace the client id of an app at the identity provider')
    .argument('<name>', 'name of the app', nonEmpty)
    .argument('[id]', 'client id', shortText)
    .option('--none', 'remove its client id: tokens of the provider are rejected from then on')
  add(apps, 'delete', async () => (await app()).remove, ['my-app', 'my-app --with-connections'])
    .description('delete an app and its tokens, immediately and permanently')
    .argument('<name>', 'name of the app', nonEmpty)
    .option('--with-connections', 'delete its connections and all their rows, too')
  const tokens = program.command('token').description('bearer tokens of apps')
  add(tokens, 'issue', async () => (await token()).issue, ['--app my-app --ttl 90d'])
    .description('issue a token and show it, once; other tokens of the app stay valid')
    .requiredOption('--app <name>', 'the app', nonEmpty)
    .option('--ttl <duration>', 'its lifetime: 90d, 12h, 30m; default: it never expires', lifetime)
  add(tokens, 'list', async () => (await token()).list, ['--app my-app'])
    .description('list the tokens of an app, without secrets')
    .requiredOption('--app <name>', 'the app', nonEmpty)
  add(tokens, 'expiring', async () => (await token()).listExpiring, ['', '--within 30d'])
    .description('list the tokens of all apps that expire soon; exit code 1 if there are any')
    .option('--within <duration>', 'in this time: 90d, 12h, 30m; default: 14d', lifetime, TWO_WEEKS)
  add(tokens, 'revoke', async () => (await token()).revoke, [
    '0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863',
  ])
    .description('revoke a token, immediately and permanently')
    .argument('<id>', 'id of the token, from `token list`', uuid)
  const connections = program
    .command('connection')
    .description('links of users to banks or brokers')
  add(connections, 'create', async () => (await connection()).create, [
    '--app my-app',
    '--app my-app --stream -',
  ])
    .description('create a connection and show its token, once; or many of them')
    .requiredOption('--app <name>', 'its app', nonEmpty)
    .option('--token-file <file>', 'file with its token; generated if absent', nonEmpty)
    .option('--label <text>', 'a name for people', shortText)
    .option('--external-id <id>', 'your id of it, unique in the app', shortText)
    .option('--stream [file]', 'one for each line: {"label":…,"externalId":…}; default: -')
  add(connections, 'list', async () => (await connection()).list, [
    '--app my-app --refreshed-before 2d',
  ])
    .description('list the connections of an app in the order of their ids, without secrets')
    .requiredOption('--app <name>', 'the app', nonEmpty)
    .option('--external-id <id>', 'only the one with your id', nonEmpty)
    .option('--label <text>', 'only those with exactly this label', nonEmpty)
    .option('--refreshed-before <time>', 'only those with no refresh since 2d, 12h or a time', time)
    .option('--after <id>', 'only those after this id', key)
    .option('--limit <n>', 'at most n of them', wholeNumber(1, 1e9))
  add(connections, 'show', async () => (await connection()).show, ['4611686018427387904'])
    .description('show a connection, without secrets')
    .argument('<id>', 'its id; with --app, also your external id')
    .option('--app <name>', 'the app that it must belong to', nonEmpty)
  add(connections, 'delete', async () => (await connection()).remove, ['4611686018427387904'])
    .description('delete connections and all their rows, immediately and permanently')
    .argument('[id]', 'id of the connection; with --app, also your external id')
    .option('--file <file>', 'file with one id a line; a repetition continues')
    .option('--app <name>', 'the app that it must belong to', nonEmpty)
  const importing = program.command('import').description('import rows, as NDJSON or CSV')
  for (const { name, dates } of lists) {
    const example = '--connection 4611686018427387904 --format csv rows.csv.gz'
    const command = add(importing, name, async () => (await imports()).run, [example])
      .description(`import ${name.replaceAll('-', ' ')}, all or none; updates those with known ids`)
      .argument('<file...>', 'files with the fields of the API, also gzip; - is standard input')
      .addOption(new Option('--format <format>').choices(['ndjson', 'csv']).default('ndjson'))
      .requiredOption('--connection <id>', 'its id; with --app, also your external id')
      .option('--app <name>', 'the app that the connection must belong to', nonEmpty)
      .option('--dry-run', 'only validate the rows, and count what an import would change')
      .option('--replace', 'also remove the rows of the connection that the files do not have')
      .option('--yes', 'accept that --replace removes more than half of the rows')
      .addHelpText('after', LEFT_OUT)
    // A range needs an effective date.
    if (dates.length > 0)
      command
        .option('--from <day>', 'first effective date that --replace replaces, YYYY-MM-DD')
        .option('--to <day>', 'last effective date that --replace replaces, YYYY-MM-DD')
  }
  add(program, 'refresh', async () => (await refresh()).run, ['day.ndjson.gz > results.ndjson'])
    .description('refresh many connections: one line of JSON for each, with all its lists')
    .argument('[file...]', 'files, also compressed by gzip; default: -, standard input')
    .option('--jobs <n>', 'number of sessions', wholeNumber(1, 999), 4)
    .option('--app <name>', 'the app of the connections; accepts their external ids, too', nonEmpty)
    .addHelpText('after', REFRESH_FORMAT)
}

const LEFT_OUT = `A missing field becomes null. Exception: completedAt of a transfer order, a past time. A missing completedAt becomes
the time of the import, or stays that of a stored order; null means not completed.`

const REFRESH_FORMAT = `A line is the refresh of one connection, and one transaction. A list that is absent stays:
  {"connection":"<id>",${lists.map(({ name }) => `"${propertyOf(name)}":[…]`).join()}}
"replace":{"from":"YYYY-MM-DD","to":"YYYY-MM-DD"} also removes the other rows in this range of these lists.
The command prints a result after each commit. After a crash, continue at the first line without one.`

/** Returns the call of a command, such as `operator app create`. */
export function callOf(command: Command): string {
  return command.parent ? `${callOf(command.parent)} ${command.name()}` : command.name()
}

const wholeNumber = (minimum: number, maximum: number) => (text: string) => {
  const number = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN
  if (number >= minimum && number <= maximum) return number
  throw new InvalidArgumentError(`It must be a whole number from ${minimum} to ${maximum}.`)
}

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }

/** Returns the seconds of a duration such as `90d`, `12h` or `30m`; NaN for another text. */
function secondsOf(duration: string): number {
  const [, count, unit = ''] = /^([0-9]{1,10})([smhdw])$/.exec(duration) ?? []
  return Number(count) * (SECONDS[unit] ?? Number.NaN)
}

function lifetime(text: string): number {
  const seconds = secondsOf(text)
  if (seconds > 0 && seconds <= secondsOf('36500d')) return seconds
  throw new InvalidArgumentError('Write a number and s, m, h, d or w, from 1s to 36500d.')
}

function time(text: string): Date {
  const seconds = secondsOf(text)
  const at = Number.isNaN(seconds) ? Date.parse(text) : Date.now() - seconds * 1_000
  if (Number.isFinite(at) && /^[0-9]/.test(text)) return new Date(at)
  throw new InvalidArgumentError('Write an age such as 2d, or a time such as 2025-03-14T15:00Z.')
}

const uuid = accepting(isUuid, 'The id is a UUID: see `token list --app NAME`.')
const key = accepting(isConnectionKey, 'It must be the id of a connection.')
