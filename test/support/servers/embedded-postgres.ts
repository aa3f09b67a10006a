import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import type { Test } from 'tap'
import type { Account } from '../../../tools/embedded-postgres/account.ts'
import { openCluster } from '../../../tools/embedded-postgres/cluster.ts'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { socketUrl } from '../../../tools/embedded-postgres/socket.ts'
import { setPassword } from '../../../tools/embedded-postgres/tcp.ts'
import { openAsOwner } from '../logins.ts'
import type { TestDatabase } from '../new-database.ts'
import { type Program, startProgram } from '../processes/program.ts'
import { createTemplate, databaseUrl, onServer } from '../template.ts'
import { until } from '../until.ts'

/** PostgreSQL that a test can stop and start on the same port. */
interface EmbeddedServer {
  /** Connection string of a superuser. */
  server: string
  /** Starts it and waits until it responds. */
  start(): Promise<void>
  /** SIGINT: fast shutdown. SIGQUIT: immediate shutdown, the next start recovers. */
  stop(signal: 'SIGINT' | 'SIGQUIT'): Promise<void>
}

/** Server with a database that has the schema and no rows. */
export type EmbeddedPostgres = Omit<EmbeddedServer, 'server'> & TestDatabase

/** Folder of a server with a small disk, and the size of the disk. */
interface SmallDisk {
  folder: string
  megabytes: number
}

/**
 * Starts a server without roles and databases of the service.
 * @param disk a folder that only the server sees as a disk of its own, for a tablespace
 */
export async function startEmbeddedServer(t: Test, disk?: SmallDisk): Promise<EmbeddedServer> {
  const folder = await mkdtemp(join(tmpdir(), 'faults-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  // PostgreSQL may run as another user, who needs access to the folder.
  await chmod(folder, 0o711)
  const cluster = await openCluster(folder)
  const port = await freePort()
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    // The parent of the folder in which PostgreSQL works.
    unix_socket_directories: '..',
    fsync: 'off',
  }
  const flags = Object.entries(settings).map(([name, value]) => `--${name}=${value}`)
  let program: Program | undefined
  const launch = async () => {
    program = await startProgram(t, {
      command: cluster.binaries.postgres,
      package: 'libc6',
      args: ['-D', join(cluster.folder, 'data'), ...flags],
      account: disk === undefined ? cluster.account : withDisk(cluster.account, disk),
      lastSignal: 'SIGQUIT',
    })
  }
  const superuser = await socketUrl(cluster.folder, String(port))
  const start = async () => {
    await launch()
    await until('PostgreSQL responds', () => responds(superuser))
  }
  await start()
  const password = 'only-in-this-test'
  await setPassword(superuser, password)
  const server = `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`
  const stop = async (signal: 'SIGINT' | 'SIGQUIT') => {
    await program?.end(signal)
  }
  return { server, start, stop }
}

/** The disk is mounted in a namespace of the server, so it ends with the server. */
function withDisk({ prefix }: Account, { folder, megabytes }: SmallDisk): Account {
  const mount = `mount -t tmpfs -o size=${megabytes}m,mode=700 tmpfs "$0" && exec "$@"`
  const [uid, gid] = [process.getuid?.(), process.getgid?.()]
  if (uid === 0) return { prefix: ['unshare', '--mount', 'sh', '-c', mount, folder, ...prefix] }
  // Another user may mount as the root of a namespace, and PostgreSQL does not run as root.
  const back = ['unshare', '--user', `--map-user=${uid}`, `--map-group=${gid}`]
  const shell = ['sh', '-c', mount, folder]
  return { prefix: ['unshare', '--map-root-user', '--mount', ...shell, ...back, ...prefix] }
}

export async function startEmbeddedPostgres(t: Test): Promise<EmbeddedPostgres> {
  const { server, start, stop } = await startEmbeddedServer(t)
  const url = databaseUrl(server, (await createTemplate(server)).name)
  const db = openAsOwner(t, url)
  // Unlike loginOfService(), this does not drop the role: the test deletes the whole server.
  await sql`create role service login password 'service' in role investment_service`.execute(db)
  return {
    url,
    login: url.replace(/postgres:[^@]*@/, 'service:service@'),
    db,
    start,
    stop,
  }
}

const responds = (url: string) =>
  onServer(url, 'select').then(
    () => true,
    () => false,
  )
