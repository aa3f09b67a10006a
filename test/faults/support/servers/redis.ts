import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { freePort } from '../../../../tools/embedded-postgres/free-port.ts'

/** A Redis of its own for a test, from Debian's package redis-server, which keeps nothing on disk. */
export interface TestRedis {
  url: string
  client: Redis
  start(): Promise<void>
  stop(): Promise<void>
  /** Makes it hang: it takes connections and commands, and answers none until it is resumed. */
  freeze(): void
  resume(): void
}

export async function startRedis(t: Test): Promise<TestRedis> {
  const port = await freePort()
  const url = `redis://127.0.0.1:${port}`
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: null })
  client.on('error', () => {})
  let process: ChildProcess | undefined
  const redis: TestRedis = {
    url,
    client,
    start: async () => {
      const options = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
      process = spawn('redis-server', options.map(String), { stdio: 'ignore' })
      await once(process, 'spawn')
      await client.ping()
    },
    stop: async () => {
      if (process?.exitCode !== null) return
      process.kill('SIGKILL')
      await once(process, 'exit')
    },
    freeze: () => process?.kill('SIGSTOP'),
    resume: () => process?.kill('SIGCONT'),
  }
  t.teardown(async () => {
    client.disconnect()
    await redis.stop()
  })
  await redis.start()
  return redis
}
