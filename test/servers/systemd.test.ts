/** Runs the commands of the units as systemd would: their environment, credential, user, folder and umask, and nothing else. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { openTestDatabase } from '../support/new-database.ts'
import { thisRelease } from '../support/processes/release.ts'
import { addApp, addToken } from '../support/rows.ts'
import { until } from '../support/until.ts'

/** A user without rights, as DynamicUser makes one. */
const NOBODY = { uid: 65_534, gid: 65_534 }

/** True if root runs the tests in a folder that this user may read. Otherwise the commands run as the user of the tests. */
function canBeNobody(): boolean {
  const options = { ...NOBODY, cwd: thisRelease }
  const read = ['-e', 'fs.readFileSync("node_modules/pg/package.json")']
  return process.getuid?.() === 0 && spawnSync(process.execPath, read, options).status === 0
}
const user = canBeNobody() ? NOBODY : undefined

const { url, db, login } = await openTestDatabase(t)
const folder = await mkdtemp(join(tmpdir(), 'units-'))
t.teardown(() => rm(folder, { recursive: true }))
await chmod(folder, 0o711)

/** Files of root that the pages create. */
const files: Record<string, string> = {
  '/etc/investment-data-query.url': login,
  '/etc/investment-data-operator.url': url,
  '/etc/investment-data-query.env': 'LOG_LEVEL=info\nSHUTDOWN_DELAY_MS=0\n',
}

interface Unit {
  values(directive: string): string[]
  /** Starts a command of the unit. */
  start(t: Test, command: string, variables?: Record<string, string>): ChildProcess
}

/** Reads a unit, and makes its credential. */
async function openUnit(name: string, instance = ''): Promise<Unit> {
  const unit = await readFile(`deploy/systemd/${name}`, 'utf8')
  const credentials = await mkdtemp(join(folder, 'credentials-'))
  const values = (directive: string) =>
    [...unit.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value = '']) =>
      value.replaceAll('%i', instance).replaceAll('%d', credentials),
    )
  for (const credential of values('LoadCredential')) {
    const [id = '', path = ''] = credential.split(':')
    await writeFile(join(credentials, id), String(files[path]), { mode: 0o400 })
    if (user) await chown(join(credentials, id), user.uid, user.gid)
  }
  if (user) await chown(credentials, user.uid, user.gid)
  const environmentFiles = values('EnvironmentFile').flatMap((path) =>
    String(files[path]).trim().split('\n'),
  )
  const assignments = [
    ...values('Environment').flatMap((line) => line.split(' ')),
    ...environmentFiles,
  ]
  const environment = Object.fromEntries(
    assignments.map((assignment) => {
      const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(assignment) ?? []
      return [name, value]
    }),
  )
  const [umask = '0022'] = values('UMask')
  return {
    values,
    start: (t, command, variables = {}) => {
      const line = `umask ${umask}; exec ${command.replace('/usr/local/bin/node', process.execPath)}`
      const options = { cwd: thisRelease, env: { ...environment, ...variables }, ...user }
      const child = spawn('/bin/sh', ['-c', line], {
        stdio: ['ignore', 'pipe', 'pipe'],
        ...options,
      })
      t.teardown(() => child.kill('SIGKILL'))
      return child
    },
  }
}

/** Runs the command of a job to its end. */
async function runJob(t: Test, name: string) {
  const unit = await openUnit(`investment-data-${name}.service`)
  t.same(unit.values('WorkingDirectory'), ['/opt/investment-data-query-service'])
  const child = unit.start(t, String(unit.values('ExecStart')[0]))
  const output = Promise.all([child.stdout, child.stderr].map((stream) => stream && text(stream)))
  const [code] = await once(child, 'exit')
  return { code, output: (await output).join('') }
}

t.test('verify, prune and token expiring: the command of each unit succeeds', async (t) => {
  for (const job of ['verify', 'prune', 'token-expiring']) {
    const { code, output } = await runJob(t, job)
    t.equal(code, 0, `${job}: ${output}`)
  }
})

t.test('verify and token expiring: the unit fails if the command finds something', async (t) => {
  const id = await addApp(db)
  await addToken(db, id)
  await sql`update app_token set expires_at = now() + interval '1 day' where app_id = ${id}`.execute(
    db,
  )
  const expiring = await runJob(t, 'token-expiring')
  t.equal(expiring.code, 1)
  t.match(expiring.output, /expires/i)
  await sql`alter table connection disable trigger remember_version`.execute(db)
  const verified = await runJob(t, 'verify')
  t.equal(verified.code, 1)
  t.match(verified.output, 'remember_version')
  await sql`alter table connection enable trigger remember_version`.execute(db)
})

t.test('service: it starts, reloads its secrets, and ends at SIGTERM', async (t) => {
  // The port of the metrics is that of the service with a 1 in front, and at most 65535.
  const instance = String(2_000 + (process.pid % 3_500))
  const unit = await openUnit('investment-data-query@.service', instance)
  // systemd.resource-control: a weight counts within the slice, and a template has a slice of its own.
  t.same(unit.values('Slice'), ['system.slice'])
  t.same(unit.values('CPUWeight'), ['1000'])
  const child = unit.start(t, String(unit.values('ExecStart')[0]))
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (data: string) => {
      log += data
    })
  const status = () =>
    fetch(`http://127.0.0.1:1${instance}/health/ready`).then(
      (response) => response.status,
      () => 0,
    )
  await until('the service is ready', async () => {
    if (child.exitCode !== null) throw new Error(log)
    return (await status()) === 200
  })
  const before = log.length
  const [reload = ''] = unit.values('ExecReload')
  const reloading = unit.start(t, reload, { MAINPID: String(child.pid) })
  t.same(await once(reloading, 'exit'), [0, null])
  await until('it has read its secrets again', () =>
    /SIGHUP: new connections use/.test(log.slice(before)),
  )
  t.equal(await status(), 200)
  child.kill('SIGTERM')
  t.same(await once(child, 'exit'), [0, null])
})
