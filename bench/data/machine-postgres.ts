import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { chooseAccount } from '../../tools/embedded-postgres/account.ts'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'

/** Folder of the majors of PostgreSQL that Debian's packages install. */
const DEBIAN = '/usr/lib/postgresql'
/** Oldest major that the service supports. */
const OLDEST = 15

/** Returns the programs of the newest PostgreSQL of this machine: those that production would run. */
export async function programsOfMachine(): Promise<string | undefined> {
  const majors = (await readdir(DEBIAN).catch(() => [])).map(Number)
  const newest = majors.filter((major) => major >= OLDEST).sort((a, b) => b - a)
  return newest
    .map((major) => join(DEBIAN, String(major), 'bin'))
    .find((folder) => existsSync(join(folder, 'postgres')) && existsSync(join(folder, 'initdb')))
}

export interface MachinePostgres {
  /** URL of a superuser. */
  url: string
  stop(): Promise<void>
}

/** Starts a new cluster with these programs on a free port of 127.0.0.1, and removes it at the end. */
export async function startMachinePostgres(
  programs: string,
  settings: Record<string, string>,
): Promise<MachinePostgres> {
  const account = await chooseAccount(undefined)
  const folder = await mkdtemp(join(tmpdir(), 'bench-'))
  if (account.owner) await chown(folder, account.owner.uid, account.owner.gid)
  const data = join(folder, 'data')
  const options = { cwd: folder, ...account.owner }
  const command = (program: string, args: string[]): [string, string[]] => {
    const [first = '', ...others] = [...account.prefix, join(programs, program), ...args]
    return [first, others]
  }
  const access = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8']
  await promisify(execFile)(
    ...command('initdb', [...access, '--no-sync', '--no-instructions', `--pgdata=${data}`]),
    options,
  )
  const port = await freePort()
  const all = { listen_addresses: '127.0.0.1', port, unix_socket_directories: '', ...settings }
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawn(...command('postgres', ['-D', data, ...flags]), {
    ...options,
    stdio: 'ignore',
  })
  const exited = once(server, 'exit')
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`
  for (let tries = 0; !(await accepts(url)); tries += 1) {
    if (tries > 100 || server.exitCode !== null)
      throw new Error(`PostgreSQL of ${programs} did not start`)
    await sleep(100)
  }
  const stop = async () => {
    server.kill('SIGINT')
    await exited
    await rm(folder, { recursive: true })
  }
  return { url, stop }
}

async function accepts(url: string): Promise<boolean> {
  const client = new pg.Client(url)
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}
