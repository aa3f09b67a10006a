import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { codeBlocks, fillIn } from '../documented-commands.ts'
import { notRoot, type Program, startProgram } from '../processes/program.ts'
import { until } from '../until.ts'
import { firstValue, onPort } from './debian-postgres.ts'

/** Path of a newer PgBouncer than Debian's. */
const newer = process.env.TEST_PGBOUNCER
/** PgBouncer supports prepared statements since 1.21. Debian's is older. */
const supportsPrepared = newer !== undefined

/** PgBouncer of Debian's package pgbouncer. */
export interface PgBouncer {
  /** Returns a connection string that leads through PgBouncer. */
  through(url: string): string
  start(): Promise<void>
  /** Kills it, which closes all connections. */
  stop(): Promise<void>
  /** Newest part of its log since the last start. */
  log(): string
}

/**
 * Starts it with the documented configuration.
 * @param url connection string of PostgreSQL
 * @param serverConnections number of connections to PostgreSQL
 */
export async function startPgBouncer(
  t: Test,
  url: string,
  serverConnections: number,
  mode: 'session' | 'transaction' = 'transaction',
): Promise<PgBouncer> {
  const { hostname, port: serverPort, pathname, username, password } = new URL(url)
  const account = await notRoot()
  const folder = await mkdtemp(join(tmpdir(), 'pgbouncer-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await writeFile(`${folder}/users`, `"${username}" "${password}"\n`)
  const port = await freePort()
  const [configuration = ''] = codeBlocks('PgBouncer')
  const filled = fillIn(configuration, {
    'investments = host=10.0.0.5': `${pathname.slice(1)} = host=${hostname} port=${serverPort}`,
    'listen_addr = 10.0.0.6': `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    'pool_mode = transaction': `pool_mode = ${mode}`,
    '/etc/pgbouncer/userlist.txt': `${folder}/users`,
    'default_pool_size = 16': `default_pool_size = ${serverConnections}`,
    ...(supportsPrepared ? {} : { 'max_prepared_statements = 100': '' }),
  })
  await writeFile(`${folder}/pgbouncer.ini`, filled)
  await chmod(folder, 0o711)
  if (account.owner) await chown(folder, account.owner.uid, account.owner.gid)
  let program: Program | undefined
  const through = (direct: string) => onPort(direct, port)
  const start = async () => {
    program = await startProgram(t, {
      command: newer ?? 'pgbouncer',
      package: 'pgbouncer',
      args: [`${folder}/pgbouncer.ini`],
      account,
    })
    const responds = () =>
      firstValue(through(url), 'select true').catch(() => {
        if (program?.process.exitCode !== null) throw new Error(program?.output())
        return false
      })
    await until('PgBouncer responds', async () => (await responds()) === true)
  }
  await start()
  return {
    through,
    start,
    stop: async () => {
      await program?.end('SIGKILL')
    },
    log: () => program?.output() ?? '',
  }
}
