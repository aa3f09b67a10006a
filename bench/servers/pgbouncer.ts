import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'

/** BENCH_PGBOUNCER is the path of another version than Debian's. */
const program = process.env.BENCH_PGBOUNCER ?? 'pgbouncer'

/** Starts PgBouncer in transaction mode; undefined if it is not installed. */
export async function startPgBouncer(target: string) {
  const version = await versionOf(program)
  if (version === undefined) return undefined
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const supportsPrepared = major > 1 || minor >= 21
  const { hostname, port: serverPort, username, password, pathname } = new URL(target)
  const folder = await mkdtemp(join(tmpdir(), 'pgbouncer-'))
  await chmod(folder, 0o755)
  const port = await freePort()
  const users = join(folder, 'users')
  const file = join(folder, 'pgbouncer.ini')
  await writeFile(users, `"${username}" "${password}"\n`)
  await writeFile(
    file,
    `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = 10
${supportsPrepared ? 'max_prepared_statements = 200' : ''}
logfile =
ignore_startup_parameters = extra_float_digits
`,
  )
  const asRoot = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn(program, ['-q', ...asRoot, file], { stdio: 'ignore' })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  await once(child, 'spawn')
  return {
    version,
    supportsPrepared,
    url: `postgres://${username}:${password}@127.0.0.1:${port}${pathname}`,
    port,
    pid: child.pid ?? 0,
    stop: async () => {
      child.kill()
      await exited
      await rm(folder, { recursive: true })
    },
  }
}

async function versionOf(program: string): Promise<string | undefined> {
  const found = await promisify(execFile)(program, ['--version']).catch(() => undefined)
  return found && /PgBouncer (\S+)/.exec(found.stdout)?.[1]
}
