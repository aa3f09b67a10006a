import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import { startProgram, until } from './program.ts'

/** A proxy before two instances; returns the address that clients use. */
export type StartProxy = (t: Test, instances: readonly [number, number]) => Promise<string>

export const startHaproxy: StartProxy = async (t, instances) => {
  const { port, folder } = await configured(t, 'haproxy.cfg', instances)
  const args = ['-db', '-f', `${folder}/haproxy.cfg`]
  return await started(t, { command: 'haproxy', package: 'haproxy', args }, port)
}

export const startNginx: StartProxy = async (t, instances) => {
  const { port, folder } = await configured(t, 'nginx.conf', instances)
  const args = ['-p', folder, '-e', 'stderr', '-c', 'nginx.conf']
  return await started(t, { command: 'nginx', package: 'nginx-light', args }, port)
}

/** A copy of the example in proxies/, with the ports of this test. */
async function configured(t: Test, name: string, [one, two]: readonly [number, number]) {
  const folder = await mkdtemp(join(tmpdir(), 'proxy-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const example = await readFile(join(import.meta.dirname, 'proxies', name), 'utf8')
  const port = await freePort()
  const own = example
    .replace('127.0.0.1:8080', `127.0.0.1:${port}`)
    .replace('127.0.0.1:3001', `127.0.0.1:${one}`)
    .replace('127.0.0.1:3002', `127.0.0.1:${two}`)
    // What Debian has chosen for them belongs to another user.
    .replace(
      'http {',
      `http {${TEMPORARY.map((kind) => `${kind}_temp_path temp-${kind};`).join(' ')}`,
    )
  await writeFile(join(folder, name), own)
  return { port, folder }
}

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']

async function started(
  t: Test,
  options: { command: string; package: string; args: string[] },
  port: number,
): Promise<string> {
  const program = await startProgram(t, { ...options, lastSignal: 'SIGTERM' })
  const url = `http://127.0.0.1:${port}`
  await until(`${options.command} has found both`, async () => {
    if (program.process.exitCode !== null) throw new Error(program.said())
    return await fetch(`${url}/health/live`).then(
      ({ status }) => status === 200,
      () => false,
    )
  })
  return url
}
