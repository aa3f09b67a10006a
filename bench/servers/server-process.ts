import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'

export interface ServerProcess {
  port: number
  pid: number
  stop(): Promise<void>
}

/** Starts a server process on a free port, and waits for its first response below 500. */
export async function startProcess(
  script: string,
  environment: Record<string, string>,
  health = '/',
  options: string[] = [],
): Promise<ServerProcess> {
  const port = await freePort()
  const env = { ...process.env, NODE_ENV: 'production', PORT: String(port), ...environment }
  const child = spawn(process.execPath, [...options, script], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  await untilResponds(child, port, health)
  return { port, pid: child.pid ?? 0, stop: () => stop(child) }
}

/**
 * Waits for the first response below 500 of a process.
 * @throws Error with the end of its output, when it exits or does not respond within a minute
 */
export async function untilResponds(child: ChildProcess, port: number, path: string) {
  let output = ''
  child.stderr?.on('data', (text: Buffer) => {
    output = (output + text).slice(-4000)
  })
  for (let tries = 0; !(await responds(port, path)); tries += 1) {
    if (child.exitCode !== null || tries > 600)
      throw new Error(`${child.spawnargs.join(' ')} did not start: ${output}`)
    await sleep(100)
  }
}

async function responds(port: number, path: string): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined)
  await response?.bytes()
  return response !== undefined && response.status < 500
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const killer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await once(child, 'exit')
  clearTimeout(killer)
}
