import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { type ServerProcess, untilResponds } from './server-process.ts'

/**
 * Starts HAProxy with the configuration of Docker Compose, in front of instances on this machine.
 * @throws Error if it is not installed
 */
export async function startHaproxy(ports: number[]): Promise<ServerProcess> {
  const shipped = await readFile(
    join(import.meta.dirname, '../../deploy/haproxy/haproxy.cfg'),
    'utf8',
  )
  const port = await freePort()
  const servers = ports.map((each) => `  server s${each} 127.0.0.1:${each}`).join('\n')
  const configuration = shipped
    .replace('bind :8080', `bind 127.0.0.1:${port}`)
    .replace(' port 9464', '')
    .replace(/^ *server-template .*$/m, servers)
    .replace(/^resolvers .*/ms, '')
  const folder = await mkdtemp(join(tmpdir(), 'haproxy-'))
  const file = join(folder, 'haproxy.cfg')
  await writeFile(file, configuration)
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` }
  const child = spawn('haproxy', ['-db', '-f', file], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  await once(child, 'spawn')
  const stop = async () => {
    child.kill()
    await exited
    await rm(folder, { recursive: true })
  }
  await untilResponds(child, port, '/openapi.json')
  return { port, pid: child.pid ?? 0, stop }
}
