/**
 * Fills an empty database with the programs of a release, and records the responses of its service. Check the release out
 * outside of this repository, run `npm ci` there, and create an empty database on PostgreSQL 15 or later. Its owner in
 * DATABASE_URL is a superuser:
 *
 *     createdb recorded
 *     DATABASE_URL=postgres://postgres@127.0.0.1/recorded node test/support/released/record.ts /path/of/the/release 1.1.0
 *
 * `RELEASE.sql.gz` is the dump, and `RELEASE.json.gz` has each request of requests.ts with the response of the release.
 * operator-upgrade.test.ts restores the dump, runs `migrate`, and compares the responses in all fields that the release had.
 * changelog.test.ts upgrades the settings, unit, Compose file and commands of its documents.
 */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { DEMO } from '../../../seeds/sample-data.ts'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { addresses } from '../rows.ts'
import { until } from '../until.ts'
import { type Recorded, type ReleasedRequest, requests } from './requests.ts'

const [release = '', name = ''] = process.argv.slice(2)
const { DATABASE_URL = '' } = process.env
const folder = mkdtempSync(join(tmpdir(), 'record-'))
const node = ['--disable-warning=ExperimentalWarning', '--preserve-symlinks']

function operator(...args: string[]) {
  const command = [...node, 'src/operator/main.ts', '--json', ...args]
  return JSON.parse(execFileSync(process.execPath, command, { cwd: release, encoding: 'utf8' }))
}

function importLines(list: string, id: string, lines: string[], ...more: string[]): void {
  const file = join(folder, 'rows.ndjson')
  writeFileSync(file, lines.join('\n'))
  operator('import', list, '--connection', id, ...more, file)
}

const TEXTS = [
  '',
  ' spaces before and after ',
  'a "quoted" text, with a comma; and a semicolon',
  'one\r\ntwo\nthree\rfour',
  '\ttab \\ \\n \u2028\u0085\u0001',
  '=1+1',
  'null',
  'é ñ ł ß 中文 عربى 😀 e\u0301',
]
const NINES = '9'.repeat(38)
const DECIMALS = [
  `${NINES}.${NINES}`,
  `-0.${'0'.repeat(37)}1`,
  '0.00',
  '-0.10',
  '1.1000000000',
  '100',
]
const DAYS = ['0001-01-01', '9999-12-31', '2024-02-29', '2024-02-29', '1969-12-31']

/** Rows with each text and decimal. The numbers keep their digits, so a line is no JSON.stringify() of a row. */
function awkwardLines(key: string, owner: string, type: string): string[] {
  return Array.from({ length: 24 }, (_, index) => {
    const id = (group: number) =>
      `00000000-0000-4000-800${group}-${String(index % 24).padStart(12, '0')}`
    const text = JSON.stringify(TEXTS[index % TEXTS.length])
    const decimal = (of: number) => DECIMALS[(index + of) % DECIMALS.length]
    const day = `"${index % 5 === 0 ? 'valueDateDay' : 'operationDateDay'}":"${DAYS[index % DAYS.length]}"`
    return `{"${key}":"${id(1)}","${owner}":"${id(2)}","type":"${type}","amount":${decimal(0)},"exchangeRate":${decimal(1)},"commission":${decimal(2)},"description":${text},${day}}`
  })
}

operator('migrate')
operator('seed')
const idOf = (app: string, label: string): string =>
  operator('connection', 'list', '--app', app).items.find(
    (each: { label: string }) => each.label === label,
  ).id
// The large one would fill most of the file.
operator('connection', 'delete', idOf('demo-wealth', 'Ten years of a busy portfolio'))
const port = String(await freePort())
const service = spawn(process.execPath, [...node, 'src/server.ts'], {
  cwd: release,
  env: { ...process.env, HOST: '127.0.0.1', PORT: port, LOG_LEVEL: 'error' },
  stdio: 'inherit',
})
const url = `http://127.0.0.1:${port}`
await until('the service is ready', () =>
  fetch(`${url}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  ),
)
const recorded: Recorded[] = []
async function record({ path, token, headers = {} }: ReleasedRequest): Promise<void> {
  const response = await fetch(url + path, {
    headers: { authorization: `Bearer ${token}`, ...headers },
  })
  recorded.push({ path, token, headers, status: response.status, body: await response.text() })
}
const changes: ReleasedRequest[] = []
const id = idOf('demo-wealth', 'Nothing yet')
const { token } = DEMO.wealth
const headers = { authorization: `Bearer ${token}` }
const { portfolio, account } = addresses('DEMOEMPTY1')
for (const [list, path, key, owner, type] of [
  ['portfolio-transactions', portfolio, 'transactionId', 'portfolioId', 'BUY'],
  ['account-transactions', account, 'movementId', 'accountId', 'DEPOSIT'],
] as const) {
  const lines = awkwardLines(key, owner, type)
  importLines(list, id, lines)
  const since = await fetch(`${url}${path}?since=start`, { headers })
  const { nextCursor } = (await since.json()) as { nextCursor: string }
  changes.push({ path: `${path}?since=${nextCursor}`, token })
  // Three rows change, and one is removed.
  const changed = lines.map((line, index) =>
    index < 3 ? line.replace(/"amount":[^,]+/, '"amount":7.0') : line,
  )
  importLines(list, id, changed.slice(0, -1), '--replace')
}
const orders = TEXTS.map((text, index) => {
  const order = `"id":"00000000-0000-4000-8003-00000000000${index}","name":${JSON.stringify(text)},"titles":${DECIMALS[index % DECIMALS.length]}`
  return `{${order},"completedAt":${index === 0 ? 'null' : `"2024-0${index}-01T12:00:00.123456Z"`}}`
})
importLines('transfer-orders', id, orders)

for (const request of [...requests, ...changes]) await record(request)
service.kill()
const save = (file: string, text: string) =>
  writeFileSync(join(import.meta.dirname, file), gzipSync(text, { level: 9 }))
const options = ['--no-owner', '--rows-per-insert=50', `--dbname=${DATABASE_URL}`]
// psql alone knows these two.
const dump = execFileSync('pg_dump', options, { encoding: 'utf8' }).replace(
  /^\\(un)?restrict.*$/gm,
  '',
)
save(`${name}.sql.gz`, dump)
save(`${name}.json.gz`, JSON.stringify(recorded))
rmSync(folder, { recursive: true })
