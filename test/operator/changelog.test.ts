/**
 * An operator of 1.0.0 follows the lines of CHANGELOG.md, and knows nothing else: with the database, the settings, the
 * unit, the commands and the Compose file of 1.0.0, and with clients of both releases of that time.
 */
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { parseEnv, promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { DEMO } from '../../seeds/sample-data.ts'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { Changelog } from '../support/changelog.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { portfolioLine } from '../support/importing.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { type Program, startProgram } from '../support/processes/program.ts'
import { copyRelease } from '../support/processes/release.ts'
import { CLIENT_VERSIONS, releasedTypeScriptClient } from '../support/released/clients.ts'
import { checkReleasedCopy } from '../support/released/copies.ts'
import type { Recorded } from '../support/released/requests.ts'
import { until } from '../support/until.ts'

const changelog = await Changelog.of('2.0.0')
const upgrade = changelog.part('Upgrade from 1.0.0')
/** Settings of 1.0.0 without an effect, by the table. */
const removedSettings = changelog.part('Settings').rows.flatMap(({ code }) => code)

const released = (file: string) => join(import.meta.dirname, '../support/released', file)
const unzipped = async (file: string) => gunzipSync(await readFile(released(file))).toString()

// The folder of the new release, and the database of 1.0.0 with its rows.
const release = await copyRelease(t)
const { url: owner } = await createDatabase(t, 'template0')
const client = await openClient(t, owner)
await client.query(await unzipped('1.0.0.sql.gz'))
// The dump sets search_path and more for its session.
await client.query('discard all')

/** Programs in PATH: Node.js of this project, and `docker` with the image of this release. */
const programs = await mkdtemp(join(tmpdir(), 'upgrade-'))
t.teardown(() => rm(programs, { recursive: true }))
const dockerfile = await readFile('Dockerfile', 'utf8')
const [node, ...flags] = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(dockerfile)?.[1] ?? '[]') as string[]
await writeFile(
  join(programs, 'docker'),
  `#!/bin/sh
[ "$1 $2 $3" = 'compose run --rm' ] || exit 125
shift 3
[ "$1" = -T ] && shift
[ "$1" = migrate ] || exit 125
shift
cd '${release}'
exec '${process.execPath}' ${flags.join(' ')} "$@"
`,
)
await chmod(join(programs, 'docker'), 0o755)

interface Finished {
  code: number
  output: string
}

/** Runs a line in a shell, in the folder of the new release, as the owner of the database. */
async function runLine(line: string): Promise<Finished> {
  const path = [join(process.execPath, '..'), programs, process.env.PATH].join(delimiter)
  const env = { PATH: path, HOME: programs, DATABASE_URL: owner }
  const run = promisify(execFile)('/bin/sh', ['-c', line], { cwd: release, env })
  return run.then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
  )
}

/** Starts the service by the unit of 1.0.0. @param settings lines of its EnvironmentFile */
async function startUnit(t: Test, settings: string): Promise<Program & { url: string }> {
  const unit = await readFile(released('1.0.0.unit'), 'utf8')
  const command = /^ExecStart=\S*\/node (.*)$/m.exec(unit)?.[1]
  const { PATH = '' } = process.env
  const port = String(await freePort())
  // Lines of a file for systemd, which the service then has in its environment.
  const environment: Record<string, string> = {
    PATH,
    ...(parseEnv(settings) as Record<string, string>),
    PORT: port,
  }
  const line = `cd '${release}' && exec '${process.execPath}' ${command}`
  const program = await startProgram(t, {
    command: 'sh',
    package: 'dash',
    args: ['-c', line],
    environment,
  })
  const url = `http://127.0.0.1:${port}`
  await until('the service is ready', async () => {
    if (program.process.exitCode !== null) throw new Error(program.output())
    return fetch(`http://127.0.0.1:${environment.METRICS_PORT}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  })
  return { ...program, url }
}

/** Level of warnings in the log (pino). */
const WARN = 40

/** Settings that a warning of the log names. */
function warnedSettings(output: string): string[] {
  const lines = output.split('\n').filter((line) => line.startsWith('{'))
  const messages = lines.map((line) => JSON.parse(line)).filter(({ level }) => level === WARN)
  return messages.map(({ msg }) => String(msg).split(' ')[0] ?? '')
}

const db = openAsOwner(t, owner)
const example = await readFile(released('1.0.0.env'), 'utf8')
/** Its role exists after the upgrade. */
let login = ''

t.test('Upgrade: the commands of the lines, on the database of 1.0.0', async (upgrading) => {
  upgrading.ok(upgrade.commands.length > 1)
  for (const command of upgrade.commands) {
    const { code, output } = await runLine(command)
    upgrading.equal(code, 0, `${command}\n${output}`)
  }
  login = await loginOfService(t, db, owner)
})

/** Each setting of 1.0.0 with a value: the default, or one for a setting without a default that has left. */
const values = Object.fromEntries(
  [...example.matchAll(/^# ([A-Z_]+)=(.*)$/gm)]
    .map(([, name = '', value = '']): [string, string] => [name, value || sampleOf(name)])
    .filter(([, value]) => value !== ''),
)

function sampleOf(name: string): string {
  if (name === 'DEMO_APP_TOKEN') return DEMO.wealth.token
  if (name === 'DEMO_CONNECTION_TOKEN') return 'DEMOSMALL1'
  return removedSettings.includes(name) ? 'http://127.0.0.1:4318/v1/traces' : ''
}

async function settingsOf(given: Record<string, string>): Promise<string> {
  const port = String(await freePort())
  const all = { ...given, DATABASE_URL: login, METRICS_PORT: port, HOST: '127.0.0.1' }
  return Object.entries(all)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')
}

t.test(
  'Settings: all of 1.0.0 start the service, and its log names those of the table',
  async (t) => {
    const unit = await startUnit(t, await settingsOf(values))
    t.equal((await fetch(`${unit.url}/openapi.json`)).status, 200)
    const warned = warnedSettings(unit.output())
    // Without a collector of traces, the name has no effect, as in 1.0.0.
    t.same(new Set(warned), new Set([...removedSettings, 'OTEL_SERVICE_NAME']))
  },
)

t.test('Settings: with what the table says instead, no warning', async (t) => {
  const row = changelog.part('Settings').rows.find(({ code }) => code.includes('DEMO_APP_TOKEN'))
  const [, instead = ''] = /`(.+)`/.exec(row?.instead ?? '') ?? []
  const demo = instead
    .replace('APP_TOKEN', String(values.DEMO_APP_TOKEN))
    .replace('CONNECTION_TOKEN', String(values.DEMO_CONNECTION_TOKEN))
  const { OTEL_SERVICE_NAME, ...others } = values
  const kept = Object.entries(others).filter(([name]) => !removedSettings.includes(name))
  const settings = await settingsOf({ ...Object.fromEntries(kept), ...parseEnv(demo) } as Record<
    string,
    string
  >)
  const unit = await startUnit(t, settings)
  t.same(warnedSettings(unit.output()), [])
  t.match(await (await fetch(`${unit.url}/openapi.json`)).text(), DEMO.wealth.token)
})

t.test('Unit of 1.0.0: reload keeps the process, and stop ends it without an error', async (t) => {
  const unit = await startUnit(t, await settingsOf({ SHUTDOWN_DELAY_MS: '0' }))
  unit.process.kill('SIGHUP')
  await until('the signal has been handled', () => unit.output().includes('SIGHUP: '))
  t.equal((await fetch(`${unit.url}/openapi.json`)).status, 200)
  t.equal(unit.process.exitCode, null)
  t.equal(await unit.end('SIGTERM'), 0)
})

t.test('Commands of 1.0.0: each one runs, or the table names it', async (t) => {
  await writeFile(join(release, 'token.txt'), 'a token of the institution\n')
  await writeFile(join(release, 'rows.ndjson'), portfolioLine(1))
  const january = portfolioLine(2).replace('2024-02-29', '2025-01-15')
  await writeFile(join(release, 'january.ndjson'), january)
  const idOfConnection = async (): Promise<string> => {
    const found = await client.query(
      `select c.id from connection c join app on app.id = app_id where name = 'my-app'`,
    )
    return String(found.rows[0]?.id)
  }
  const named = new Set<string>()
  const commands = await readFile(released('1.0.0.commands'), 'utf8')
  for (const command of commands.trim().split('\n')) {
    if (command.startsWith('#')) continue
    const line = command.replace('NAME', 'my-app').replace(' ID', ` ${await idOfConnection()}`)
    const left = upgrade.rows.find(({ code }) => isNamed(line, code))
    const { code, output } = await runLine(line)
    // 2: the call is wrong, so nothing has happened.
    if (left === undefined) t.ok(code === 0, `${line}\n${output}`)
    else if (t.equal(code, 2, `${line}\n${output}`)) named.add(left.code.join(' of '))
  }
  t.same([...named].sort(), [
    '--token-file of import of connection delete',
    'CONNECTION_TOKEN of import',
    'operator expire-cursors',
  ])
})

/** True if a command has the first words of a row, and one of the others, if there are others. */
function isNamed(command: string, [first = ' ', ...others]: string[]): boolean {
  const has = (words: string) => command.includes(` ${words}`.replace(' CONN', 'CONN'))
  return has(first.replace('operator ', '')) && (others.length === 0 || others.some(has))
}

t.test('Cursors of 1.0.0: 410 once, then a new copy and its cursor', async (t) => {
  const unit = await startUnit(t, await settingsOf({}))
  const recorded: Recorded[] = JSON.parse(await unzipped('1.0.0.json.gz'))
  const feeds = recorded.filter(({ path, status }) => /since=start/.test(path) && status === 200)
  t.ok(feeds.length > 0)
  for (const { path, token, body } of feeds) {
    const list = path.slice(0, path.indexOf('?'))
    const read = async (since: string) => {
      const headers = { authorization: `Bearer ${token}` }
      const response = await fetch(`${unit.url}${list}?since=${since}`, { headers })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    t.match(await read(JSON.parse(body).nextCursor), { status: 410 })
    const copy = await read('start')
    const changes = await read(String(copy.body.nextCursor))
    t.equal(changes.status, 200)
    t.same(changes.body.items, [])
  }
})

t.test('Clients 1.1.0 and 1.2.0: their copies go on, also with the client of today', async (t) => {
  const unit = await startUnit(t, await settingsOf({}))
  for (const version of CLIENT_VERSIONS) {
    const client = await releasedTypeScriptClient(version, programs)
    await checkReleasedCopy(t, client, unit.url, owner)
  }
})

t.test('Compose file of 1.0.0, unchanged: its commands and its settings', async (t) => {
  const { services } = parse(await readFile(released('1.0.0.compose.yml'), 'utf8'), {
    merge: true,
  })
  t.equal(node, '/usr/local/bin/node')
  t.match(dockerfile, '\nWORKDIR /app\n')
  const migrated = await runLine(
    `docker compose run --rm migrate ${services.migrate.command.join(' ')}`,
  )
  t.equal(migrated.code, 0, migrated.output)
  // The values of .env, and of the file itself.
  const given = Object.entries<string | number | null>(services.service.environment)
  const passed = given.map(([name, value]): [string, string] => [
    name,
    String(value ?? values[name] ?? ''),
  ])
  const settings = Object.fromEntries(passed.filter(([, value]) => value !== ''))
  const unit = await startUnit(t, await settingsOf(settings))
  t.equal((await fetch(`${unit.url}/openapi.json`)).status, 200)
})
