/**
 * Accounts for each command in the `sh` blocks of README.md, CHANGELOG.md, CONTRIBUTING.md and docs: a test runs it, this file
 * runs it, or NOT_RUN has the reason. COMMANDS_LOG=commands.log writes the list, with the output of what ran here.
 */
import { globSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { sql } from 'kysely'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import {
  blocksOfTests,
  commandsOf,
  type DocumentedCommand,
} from '../support/documented-commands.ts'
import { thisRelease } from '../support/processes/release.ts'
import { runShell } from '../support/processes/shell.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { until } from '../support/until.ts'

const pages = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md').sort()]
const commands = pages.flatMap(commandsOf)

const REGISTRY = 'a release needs a tag, and registries of packages and images'
const CLUSTER = 'needs Citus: test/servers/citus.test.ts runs these functions on a cluster'

/** Reasons why no test runs a command. */
const NOT_RUN: [RegExp, string][] = [
  [
    /^docker (?!build|tag|push)|^old=\$\(docker |^for container in \$\(docker /,
    'needs a Docker engine',
  ],
  [/^kubectl /, 'needs a cluster of Kubernetes'],
  [
    /^systemctl /,
    'needs systemd as the first process: test/servers/systemd.test.ts runs the commands of the units',
  ],
  [
    /^npm (ci|start|install)\b/,
    'each test needs what it installs; test/load/embedded.test.ts starts the service',
  ],
  [
    /^npm (test|run) /,
    'it would run this file again; another test compares the names with package.json',
  ],
  [/^git clone --branch vVERSION |^cd checkout$|^git -C checkout push /, REGISTRY],
  [/^docker (build|tag|push) |^npm publish |npm pack --pack-destination/, REGISTRY],
  [/^pyproject-build |twine upload /, REGISTRY],
  [
    /^createdb --owner=OWNER --encoding=UTF8 --template=template0 investments$|'create extension citus'|citus_|COORDINATOR\//,
    CLUSTER,
  ],
  [/create_reference_table|^until \.\/operator token revoke ID|@STANDBY\/postgres$/, CLUSTER],
  [/^psql "\$DATABASE_URL" .*citus\.sql$/, CLUSTER],
]

const tests = blocksOfTests()
const sources = globSync('test/{clients,servers}/*.test.ts').map(
  (file) => [file, readFileSync(file, 'utf8')] as const,
)

/** Returns the test that runs a command. */
function testOf({ page, section, block, text }: DocumentedCommand): string | undefined {
  const whole = tests.get(`${section} ${block}`)
  if (whole !== undefined) return whole
  // Such as a tutorial: a test follows the whole page.
  const follower = sources.find(([, source]) => source.includes(`'${page}'`))
  if (/^docs\/(tutorials\/|sandbox\.md)/.test(page)) return follower?.[0]
  const isCall = /(^|=\S*|"|\s)\.\/operator /.test(text) && /^docs\/[\w-]+\.md$/.test(page)
  const isAlone = !commands.some(
    (other) =>
      other.page === page &&
      other.section === section &&
      other.block === block &&
      /^curl /.test(other.text),
  )
  return isCall && isAlone ? 'test/operator/documented-calls.test.ts' : undefined
}

const byTest = commands.filter((command) => testOf(command) !== undefined)
const others = commands.filter((command) => testOf(command) === undefined)
const reasonOf = ({ text }: DocumentedCommand) =>
  NOT_RUN.find(([pattern]) => pattern.test(text))?.[1]
const runHere = others.filter((command) => reasonOf(command) === undefined)
const log: string[] = [
  `${commands.length} commands: ${byTest.length} in other tests, ${runHere.length} here, ${others.length - runHere.length} not run`,
  ...byTest.map((command) => `${command.page}: ${command.text}\n  run by ${testOf(command)}`),
  ...others.flatMap((command) => {
    const reason = reasonOf(command)
    return reason === undefined ? [] : [`${command.page}: ${command.text}\n  not run: ${reason}`]
  }),
]

const { small, empty } = DEMO.wealth.connections
const service = await startSeededService(t)
const root = await mkdtemp(join(tmpdir(), 'documented-'))
t.teardown(() => rm(root, { recursive: true }))

/** A folder that looks like a checkout, without its .env and with the files that the commands read. */
const checkout = join(root, 'opt/investment-data-query-service-NEW')
await mkdir(checkout, { recursive: true })
await mkdir(join(root, 'etc/systemd/system'), { recursive: true })
for (const name of readdirSync(thisRelease))
  if (!name.startsWith('.')) await symlink(join(thisRelease, name), join(checkout, name))
await service.get(`/api/v1/queries/connections/${small.token}/assets-transfer`, {
  token: DEMO.wealth.token,
})
await until('the request has a line', () => service.log.some((line) => line.includes('"app":')))
await writeFile(join(checkout, 'service.log'), service.log.join(''))
const rejected = '26/Nov/2026:10:00:00 +0000 192.0.2.7 GET 401 310 2 one 0c1f\n'
await writeFile(join(checkout, 'haproxy.log'), rejected.repeat(3))

async function idOf(token: string): Promise<string> {
  const { rows } = await sql<{ id: string }>`
    select id from connection where token_hash = sha256(${token})`.execute(service.db)
  return String(rows[0]?.id)
}
const smallId = await idOf(small.token)

/** Placeholders of the pages. */
const VALUES: Record<string, string> = {
  'http://127.0.0.1:3000/': `${service.url}/`,
  'postgres://SUPERUSER@HOST/investments': service.databaseUrl,
  'postgres://OWNER:PASSWORD@HOST/investments': service.databaseUrl,
  'postgres://investment_service:PASSWORD@HOST/investments': String(service.config.DATABASE_URL),
  ' /etc/': ` ${root}/etc/`,
  ' /opt/': ` ${root}/opt/`,
  'APP_TOKEN=…': `APP_TOKEN=${DEMO.wealth.token}`,
  'CONNECTION_TOKEN=…': `CONNECTION_TOKEN=${empty.token}`,
  'CONNECTION_ID=…': `CONNECTION_ID=${await idOf(empty.token)}`,
  '--arg app ID': `--arg app ${JSON.parse(service.log.find((line) => line.includes('"app":')) ?? '{}').app}`,
}

/** What a command prints. */
const PRINTED: [RegExp, RegExp][] = [
  [/^curl .*idq_demo_wealth/s, /"items":\[\{"/],
  [/^printf %s "\$CONNECTION_TOKEN"/, new RegExp(`^${smallId}$`, 'm')],
  [/^awk .* uniq /, /3 192\.0\.2\.7/],
  [/^awk .*tail$/, /0c1f/],
  [/^jq --slurp --arg/, /"durationMs"/],
  [/^jq --slurp 'map\(select\(.app\)\)/, /"requests": 1/],
]

t.test('reasons: each one is of a command', (t) => {
  for (const [pattern] of NOT_RUN)
    t.ok(
      others.some(({ text }) => pattern.test(text)),
      String(pattern),
    )
  t.comment(log[0])
  t.end()
})

for (const page of new Set(runHere.map((command) => command.page)))
  t.test(`${page}: the commands succeed`, async (t) => {
    const own = runHere.filter((command) => command.page === page)
    const filled = own.map(({ text }) =>
      Object.entries(VALUES).reduce(
        (all, [placeholder, value]) => all.replaceAll(placeholder, () => value),
        text,
      ),
    )
    const script = [
      `cd ${checkout}`,
      'curl() { command curl --fail --silent --show-error "$@"; }',
      ...filled.flatMap((text) => ["echo '@@'", text]),
    ]
    const environment = {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      DATABASE_URL: service.databaseUrl,
      CONNECTION_TOKEN: small.token,
    }
    const printed = await runShell(t, script.join('\n'), environment)
    const outputs = printed.split('@@\n').slice(1)
    t.equal(outputs.length, own.length)
    for (const [index, { text }] of own.entries()) {
      const output = outputs[index] ?? ''
      log.push(`${page}: ${text}\n${output.replaceAll(/^/gm, '  ')}`)
      for (const [command, expected] of PRINTED)
        if (command.test(text)) t.match(output, expected, text)
    }
  })

t.test('files of secrets: only their owner can read them', (t) => {
  for (const name of [
    'investment-data-query.url',
    'investment-data-operator.url',
    'investment-data-query.env',
  ])
    t.equal(statSync(join(root, 'etc', name)).mode & 0o777, 0o600, name)
  t.same(readdirSync(join(root, 'etc/systemd/system')).sort(), readdirSync('deploy/systemd').sort())
  t.end()
})

t.test('npm: package.json has each script', (t) => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'))
  for (const { text } of commands) {
    const [, name] = /^npm run (?:--silent )?([\w:]+)/.exec(text) ?? []
    if (name !== undefined) t.ok(scripts[name], name)
  }
  t.end()
})

t.teardown(() => {
  const { COMMANDS_LOG } = process.env
  if (COMMANDS_LOG) writeFileSync(COMMANDS_LOG, `${log.join('\n\n')}\n`)
})
