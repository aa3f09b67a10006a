import type { Test } from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { startServiceProcess, untilReadyIs } from './service-process.ts'

/** One of several instances behind a proxy. */
export interface Instance {
  port: number
  /** Ends it with SIGTERM, starts it on the same port, and waits until it is ready. */
  restart(options?: InstanceOptions): Promise<void>
  /** Ends it with SIGTERM; returns the exit code. */
  end(): Promise<number | null>
}

export interface InstanceOptions {
  environment?: Record<string, string>
  /** Folder of the release. */
  release?: string
}

// The limits are high because a busy machine would make the remaining instance shed load.
const HIGH_LIMITS = {
  STATEMENT_TIMEOUT_MS: '10000',
}

/** Starts an instance and waits until it is ready. */
export async function startInstance(t: Test, first: InstanceOptions): Promise<Instance> {
  const port = await freePort()
  const start = async ({ environment, release }: InstanceOptions) => {
    const settings = { PORT: String(port), ...HIGH_LIMITS, ...environment }
    const service = await startServiceProcess(t, settings, release)
    await untilReadyIs(service, 200)
    return service
  }
  let service = await start(first)
  const end = async () => {
    const signalled = performance.now()
    const exitCode = await service.end('SIGTERM')
    t.comment(`ended ${Math.round(performance.now() - signalled)} ms after SIGTERM`)
    return exitCode
  }
  const restart = async (options: InstanceOptions = first) => {
    t.equal(await end(), 0, 'exit code')
    service = await start(options)
  }
  return { port, restart, end }
}
