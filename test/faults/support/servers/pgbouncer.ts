import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../../../tools/embedded-postgres/free-port.ts'
import { until } from '../../../support/until.ts'
import { blocksOf, withOwn } from '../documented-commands.ts'
import { notRoot, type Program, startProgram } from '../processes/program.ts'
import { firstValue, onPort } from './debian-postgres.ts'

/**
 * A newer one than Debian's, by its path. From 1.21 on it carries prepared statements (to 1.23 with
 * max_prepared_statements set), so that the service can be told to use them.
 */
const newer = process.env.TEST_PGBOUNCER
export const carriesPrepared = newer !== undefined

/** A PgBouncer of Debian's package pgbouncer, in transaction mode. */
export interface PgBouncer {
  /** What the connection string becomes when it goes through PgBouncer. */
  through(url: string): string
  start(): Promise<void>
  /** It closes all connections at once. */
  stop(): Promise<void>
  /** The newest part of its log, since its last start. */
  said(): string
}

/**
 * With the configuration that docs/operations.md shows.
 * @param url a login of the server that it stands before
 * @param serverConnections how many all clients share
 */
export async function startPgBouncer(
  t: Test,
  url: string,
  serverConnections: number,
): Promise<PgBouncer> {
  const { hostname, port: serverPort, pathname, username, password } = new URL(url)
  const account = await notRoot()
  const folder = await mkdtemp(join(tmpdir(), 'pgbouncer-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await writeFile(`${folder}/users`, `"${username}" "${password}"\n`)
  const port = await freePort()
  const [configuration = ''] = await blocksOf('PgBouncer')
  const own = withOwn(configuration, {
    'investments = host=10.0.0.5': `${pathname.slice(1)} = host=${hostname} port=${serverPort}`,
    'listen_addr = 10.0.0.6': `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    '/etc/pgbouncer/userlist.txt': `${folder}/users`,
    'default_pool_size = 16': `default_pool_size = ${serverConnections}`,
    ...(carriesPrepared ? {} : { 'max_prepared_statements = 100': '' }),
  })
  await writeFile(`${folder}/pgbouncer.ini`, own)
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
    const answers = () =>
      firstValue(through(url), 'select true').catch(() => {
        if (program?.process.exitCode !== null) throw new Error(program?.said())
        return false
      })
    await until('PgBouncer answers', async () => (await answers()) === true)
  }
  await start()
  return {
    through,
    start,
    stop: async () => {
      await program?.end('SIGKILL')
    },
    said: () => program?.said() ?? '',
  }
}
