import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, matchesGlob } from 'node:path'
import { parseEnv, promisify } from 'node:util'
import { t } from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { settings } from '../../src/config.ts'
import { rowTypes } from '../../src/operator/loading/row-types.ts'
import { ProblemCodes } from '../../src/schemas/problem.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { startService } from '../support/service.ts'
import { withLengths } from '../support/with-lengths.ts'

const read = (name: string) => readFile(new URL(`../../${name}`, import.meta.url), 'utf8')

/** Removes the white space between JSON values, and nothing else. */
function compact(json: string): string {
  return json.replace(/("(?:[^"\\]|\\.)*")|\s+/g, (_, text = '') => text)
}

t.test('architecture.md: the project structure names files and folders that exist', async (t) => {
  const structure = await read('docs/architecture.md')
  const folders = [...structure.matchAll(/^\| `([\w/.-]+)` \|/gm)].map(([, path]) => String(path))
  const files = [...structure.matchAll(/([\w/-]+\.ts)/g)].map(([, path]) => String(path))
  t.ok(folders.length > 15 && files.length > 15)
  for (const path of folders) t.equal(globSync(path).length, 1, path)
  for (const path of files) t.ok(globSync(`{.,src/**}/${path}`).length > 0, path)
})

t.test('README.md: the curl command returns the text that follows it', async (t) => {
  const service = await startSeededService(t)
  const [, command = '', shown = ''] =
    /```sh\n(curl [^`]*)```\s+```text\n([^`]*)```/.exec(await read('README.md')) ?? []
  const here = command.replace('http://127.0.0.1:3000', service.url)
  const { stdout } = await promisify(execFile)('bash', [
    '-c',
    `curl() { command curl -s "$@"; }; ${here}`,
  ])
  const parts = compact(shown).split('…')
  t.ok(parts.length > 2 && parts.every(Boolean), 'the text leaves out fields')
  // Each part follows the one before it.
  let end = 0
  for (const part of parts) {
    const begin = stdout.indexOf(part, end)
    t.ok(begin >= 0, part)
    end = begin + part.length
  }
  t.equal(end, stdout.length)
})

/** Returns the first block of shell commands in docs/importing.md that starts with this text. */
async function commands(start: string): Promise<string> {
  const blocks = [...(await read('docs/importing.md')).matchAll(/^```sh\n(.*?)^```/gms)]
  return blocks.map(([, block = '']) => block).find((block) => block.startsWith(start)) ?? ''
}

const ROOT = join(import.meta.dirname, '../..')

/** Runs commands with ./operator and curl as a reader does, in a folder of their own. */
async function runCommands(text: string, folder: string, env: Record<string, string> = {}) {
  const prelude = `
    curl() { command curl -s "$@"; }
    set -e
  `
  const options = { cwd: folder, env: { ...process.env, ...env } }
  // The folder may have a space in its path.
  const program = text.replaceAll('./operator', `'${join(ROOT, 'operator')}'`)
  return (await promisify(execFile)('bash', ['-c', prelude + program], options)).stdout
}

t.test('importing.md: the commands of an import create, import and read a row', async (t) => {
  const service = await startService(t)
  const folder = await mkdtemp(join(tmpdir(), 'readme-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const env = { DATABASE_URL: service.databaseUrl }
  const created = await runCommands(await commands('./operator app create'), folder, env)
  const [, appToken = ''] = /^(idq_\S+)$/m.exec(created) ?? []
  const [, connectionToken = ''] = /^([A-Za-z0-9]{22})$/m.exec(created) ?? []
  const [, connectionId = ''] = /^Connection (-?\d+) of/m.exec(created) ?? []
  const text = (await commands('APP_TOKEN='))
    .replace('CONNECTION_ID=…', `CONNECTION_ID=${connectionId}`)
    .replace('APP_TOKEN=…', `APP_TOKEN=${appToken}`)
    .replace('CONNECTION_TOKEN=…', `CONNECTION_TOKEN=${connectionToken}`)
    .replace('http://127.0.0.1:3000', service.url)
  const [line = ''] = /^\{.*\}$/m.exec(text) ?? []
  const printed = await runCommands(text, folder, env)
  t.match(printed, 'Read 1 row: 1 inserted, 0 updated, 0 unchanged.')
  const response = JSON.parse(printed.slice(printed.indexOf('{')))
  t.match(response, withLengths({ items: [JSON.parse(line)], totalItems: 1 }))
})

t.test('importing.md: the required fields of each type', async (t) => {
  const text = await read('docs/importing.md')
  for (const [name, { fields, dates }] of Object.entries(rowTypes)) {
    const required = [...fields.values()].filter(({ absent }) => absent === undefined)
    const names = required.map(({ path }) => `\`${path}\``)
    if (dates.length > 0) names.push(dates.map(({ path }) => `\`${path}\``).join(' or '))
    t.ok(text.includes(`| \`${name}\` | ${names.join(', ')} |`), `${name}: ${names.join(', ')}`)
  }
})

t.test(
  'docker-compose.yml: passes every setting on, except those that the image sets',
  async (t) => {
    const given = [...(await read('docker-compose.yml')).matchAll(/^ {6}([A-Z_]+):/gm)]
    const names = new Set(given.map(([, name]) => name))
    const missing = Object.keys(settings).filter((name) => !names.has(name))
    t.same(missing.sort(), ['DATA_DIR', 'HOST', 'PORT'])
  },
)

t.test(
  'version: the same in package.json, its lock, image, Kubernetes and CHANGELOG.md',
  async (t) => {
    const { version } = JSON.parse(await read('package.json'))
    t.equal(JSON.parse(await read('package-lock.json')).packages[''].version, version)
    t.match(await read('Dockerfile'), `org.opencontainers.image.version="${version}"`)
    t.match(await read('deploy/kubernetes/kustomization.yaml'), `newTag: ${version}\n`)
    t.match(await read('CHANGELOG.md'), `## [${version}] - 20`)
  },
)

t.test('docker-compose.yml: no default password, and sample data in the demo only', async (t) => {
  const compose = await read('docker-compose.yml')
  const passwords = [...compose.matchAll(/\$\{\w*PASSWORD(..)/g)]
  t.equal(passwords.length, 4)
  for (const [use, operator] of passwords) t.equal(operator, ':?', use)
  t.match(compose, /^ {2}seed:\n(?: {4}.*\n)*? {4}profiles: \[demo\]$/m)
})

t.test(
  'deploy/demo.env: the profile and all values that docker-compose.yml requires',
  async (t) => {
    const { COMPOSE_PROJECT_NAME, COMPOSE_PROFILES, ...others } = parseEnv(
      await read('deploy/demo.env'),
    )
    t.same(
      { COMPOSE_PROJECT_NAME, COMPOSE_PROFILES },
      {
        COMPOSE_PROJECT_NAME: 'investment-data-demo',
        COMPOSE_PROFILES: 'demo',
      },
    )
    const { DEMO_TOKENS, ...passwords } = others
    const { token, connections } = DEMO.wealth
    t.equal(DEMO_TOKENS, `${token},${connections.small.token}`)
    const required = (await read('docker-compose.yml')).matchAll(/\$\{(\w+):\?/g)
    t.same(
      Object.keys(passwords).sort(),
      [...new Set([...required].map(([, name]) => name))].sort(),
    )
  },
)

t.test('docker-compose.yml: HAProxy starts only with its profile', async (t) => {
  const compose = await read('docker-compose.yml')
  const [proxy = ''] = /^ {2}proxy:\n(?: {4}.*\n)+/m.exec(compose) ?? []
  t.match(proxy, /^ {4}profiles: \[proxy\]$/m)
  const [, file = ''] = /'\.\/(\S+):\/usr\/local\/etc\/haproxy\/haproxy\.cfg:ro'/.exec(proxy) ?? []
  t.match(await read(file), 'server-template instance 10 service:3000')
  t.match(compose, /^ {4}ports: \['127\.0\.0\.1:\$\{PORT:-3000\}:3000'\]$/m, 'also without it')
})

t.test('docs/settings.md and .env.example: every setting, and no other', async (t) => {
  const rows = (await read('docs/settings.md')).matchAll(
    /^\| `([A-Z_]+)` \| (.*) \| (.*) \| (.*) \|$/gm,
  )
  const example = await read('.env.example')
  const named: string[] = []
  for (const [, name = '', byDefault = '', range, description] of rows) {
    named.push(name)
    t.ok(example.includes(`# ${description}\n# ${name}=${byDefault.replaceAll('`', '')}\n`), name)
    const setting: Record<string, unknown> = settings[name as keyof typeof settings]
    const { default: value, minimum, maximum, enum: values } = setting
    t.equal(byDefault, value === undefined ? '' : `\`${value}\``, name)
    const limits = minimum === undefined ? '' : `${minimum} to ${maximum}`
    t.equal(range, Array.isArray(values) ? `\`${values.join('`, `')}\`` : limits, name)
  }
  const names = Object.keys(settings).sort()
  t.same(named.sort(), names)
  t.same([...example.matchAll(/^#? ?([A-Z_]+)=/gm)].map(([, name]) => name).sort(), names)
})

const defaults = new Map(
  Object.entries(settings).map(([name, { default: value }]) => [name, value]),
)
const LIMITS = [
  ['docs/settings.md', /^\| `([A-Z_]+)` \| `(\d+)` \|/gm],
  ['.env.example', /^# ?([A-Z_]+)=(\d+)$/gm],
  ['docs/settings.md', /^\| `([A-Z_]+)` (\d+) \|/gm],
] as const
for (const [file, row] of LIMITS) {
  t.test(`${file}: gives the true defaults of the limits: ${row}`, async (t) => {
    const rows = [...(await read(file)).matchAll(row)]
    t.ok(rows.length >= 5, `${rows.length} limits`)
    for (const [, name = '', value] of rows) t.equal(String(defaults.get(name)), value, name)
  })
}

const TESTS = globSync('test/**/*.test.ts', { exclude: (path) => path.endsWith('node_modules') })

t.test('docs/decisions: every test that a decision names exists', async (t) => {
  for (const page of globSync('docs/decisions/*.md')) {
    const lines = [...(await read(page)).matchAll(/^\*Test: (.*?)\*$/gms)]
    for (const [, line = ''] of lines)
      for (const [, name = ''] of line.matchAll(/`([\w/*.-]+\.test\.ts)`/g))
        t.ok(
          TESTS.some((path) => matchesGlob(path, `test/**/${name}`)),
          `${page}: ${name}`,
        )
  }
})

t.test('decisions/api.md: the statuses that extend the table of the specification', async (t) => {
  const [, listed = ''] =
    /^([\d, and]+) extend the table/m.exec(await read('docs/decisions/api.md')) ?? []
  const ofSpecification = [401, 404, 500]
  const statuses = new Set(Object.values(ProblemCodes).map(({ status }) => status))
  const others = [...statuses].filter((status) => !ofSpecification.includes(status))
  t.same(
    [...listed.matchAll(/\d+/g)].map(Number),
    others.toSorted((a, b) => a - b),
  )
})
