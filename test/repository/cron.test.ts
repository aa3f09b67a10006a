import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import t from 'tap'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'

const { url, db } = await openTestDatabase(t)
const { connection } = await addCaller(db)
await addPortfolioTransactions(db, connection, {})

/** Folder of a program `docker` that runs the command of the operator here, and prints its progress, as Compose does. */
const folder = await mkdtemp(join(tmpdir(), 'cron-'))
t.teardown(() => rm(folder, { recursive: true }))
await mkdir(join(folder, 'investments'))
const docker = `#!/bin/sh
echo ' Container investments-postgres-1  Running' >&2
[ "$1 $2 $3 $4 $5" = 'compose run --rm -T migrate' ] || exit 125
shift 5
cd '${process.cwd()}'
exec '${process.execPath}' --disable-warning=ExperimentalWarning "$@"
`
await writeFile(join(folder, 'docker'), docker)
await chmod(join(folder, 'docker'), 0o755)

/** Lines of cron in docs/deploy.md, by their command. A line has five times, then what cron gives to sh. */
const lines = new Map(
  codeBlocks('Routine jobs')
    .join('\n')
    .split('\n')
    .filter((line) => /^(\S+ ){5} *cd /.test(line))
    .map((line) => [
      / migrate operator ([\w ]*\w) 2>/.exec(line)?.[1],
      line.replace(/^(\S+ ){5} */, ''),
    ]),
)

/** Runs a line as cron does. @returns what cron mails */
async function mailOf(command: string): Promise<string> {
  const line = fillIn(String(lines.get(command)), {
    '/opt/investments': join(folder, 'investments'),
  })
  t.notMatch(line, '%', 'cron makes a line break of it')
  const env = { PATH: `${folder}:${process.env.PATH}`, DATABASE_URL: url }
  const { stdout, stderr } = await promisify(execFile)('/bin/sh', ['-c', line], { env })
  return stdout + stderr
}

t.test('cron: three lines, and no mail if the command succeeds', async (t) => {
  t.same([...lines.keys()], ['verify', 'prune', 'token expiring'])
  for (const command of ['verify', 'prune', 'token expiring'])
    t.equal(await mailOf(command), '', command)
})

t.test('cron: the mail of `verify` has what it found', async (t) => {
  await sql`update connection set portfolio_transactions = 7 where id = ${connection.id}`.execute(
    db,
  )
  t.match(await mailOf('verify'), /portfolio_transaction\b.*\b7\b.*\b1\b/s)
})

t.test('cron: the mail of `token expiring` has the tokens that expire soon', async (t) => {
  await sql`update app_token set expires_at = now() + interval '13 days'`.execute(db)
  const { rows } = await sql<{ id: string }>`select id from app_token`.execute(db)
  t.match(await mailOf('token expiring'), String(rows[0]?.id))
})
