import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { type Program, startProgram } from '../processes/program.ts'
import { within } from '../within.ts'

/** Redis of Debian's package redis-server, without persistence. */
export interface TestRedis {
  url: string
  client: Redis
  start(): Promise<void>
  stop(): Promise<void>
  /** Makes it hang: it accepts connections, but does not respond before it is resumed. */
  freeze(): void
  resume(): void
}

export async function startRedis(t: Test): Promise<TestRedis> {
  const port = await freePort()
  const url = `redis://127.0.0.1:${port}`
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: null })
  client.on('error', () => {})
  t.teardown(() => client.disconnect())
  const options = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const command = { command: 'redis-server', package: 'redis-server', args: options.map(String) }
  let program: Program | undefined
  const start = async () => {
    program = await startProgram(t, command)
    await within('Redis responds', client.ping())
  }
  await start()
  return {
    url,
    client,
    start,
    stop: async () => {
      await program?.end('SIGKILL')
    },
    freeze: () => program?.process.kill('SIGSTOP'),
    resume: () => program?.process.kill('SIGCONT'),
  }
}
