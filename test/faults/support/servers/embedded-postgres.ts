import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import type { Test } from 'tap'
import type { Tables } from '../../../../src/postgres/tables.ts'
import { openCluster } from '../../../../tools/embedded-postgres/cluster.ts'
import { freePort } from '../../../../tools/embedded-postgres/free-port.ts'
import { openAsOwner } from '../../../support/logins.ts'
import { createTemplate, databaseUrl, onServer } from '../../../support/template.ts'
import { until } from '../../../support/until.ts'
import { type Program, startProgram } from '../processes/program.ts'

/** A PostgreSQL of a test's own, to be stopped and started on the same port, with the schema and no rows. */
export interface OwnPostgres {
  /** Connection string of the owner. */
  url: string
  /** Connection string of the service. */
  login: string
  /** All tables, as their owner. */
  db: Kysely<Tables>
  /** Returns as soon as it answers. */
  start(): Promise<void>
  /** SIGINT is a fast shutdown, SIGQUIT an immediate one, which leaves a recovery to the next start. */
  stop(signal: 'SIGINT' | 'SIGQUIT'): Promise<void>
}

export async function startOwnPostgres(t: Test): Promise<OwnPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'faults-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  // Where root may not make a user namespace, PostgreSQL is another user, who has to pass through.
  await chmod(folder, 0o711)
  const cluster = await openCluster(folder)
  const port = await freePort()
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: 'off',
  }
  const flags = Object.entries(settings).map(([name, value]) => `--${name}=${value}`)
  let program: Program | undefined
  const launch = async () => {
    program = await startProgram(t, {
      command: cluster.binaries.postgres,
      package: 'libc6',
      args: ['-D', join(cluster.folder, 'data'), ...flags],
      account: cluster.account,
      lastSignal: 'SIGQUIT',
    })
  }
  const password = await readFile(join(cluster.folder, 'password'), 'utf8')
  const server = `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`
  const start = async () => {
    await launch()
    await until('PostgreSQL answers', () => answers(server))
  }
  await start()
  const url = databaseUrl(server, (await createTemplate(server)).name)
  const db = openAsOwner(t, url)
  // Not loginOfService(): nobody has to drop it from a server that goes with its folder.
  await sql`create role service login password 'service' in role investment_service`.execute(db)
  return {
    url,
    login: url.replace(/postgres:[^@]*@/, 'service:service@'),
    db,
    start,
    stop: async (signal) => {
      await program?.end(signal)
    },
  }
}

const answers = (url: string) =>
  onServer(url, 'select').then(
    () => true,
    () => false,
  )
