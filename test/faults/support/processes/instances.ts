import type { Test } from 'tap'
import { freePort } from '../../../../tools/embedded-postgres/free-port.ts'
import { until } from '../../../support/until.ts'
import { launchService } from './service-process.ts'

/** One of several instances behind a proxy. */
export interface Instance {
  port: number
  /** Ends it with SIGTERM and starts it on the same port, as it was or otherwise, until it is ready. */
  restart(otherwise?: Start): Promise<void>
  /** Ends it with SIGTERM; its exit code. */
  end(): Promise<number | null>
}

/** What it is started with, and from which folder. */
export interface Start {
  environment?: Record<string, string>
  release?: string
}

// On a machine that is busy with other tests, the one that is left would shed load, as it should.
const PATIENT = {
  DATABASE_WAIT_MS: '10000',
  STATEMENT_TIMEOUT_MS: '10000',
  MAX_EVENT_LOOP_DELAY_MS: '0',
}

/** Starts one, and waits until it is ready. */
export async function startInstance(t: Test, first: Start): Promise<Instance> {
  const port = await freePort()
  const launch = async ({ environment, release }: Start) => {
    const settings = { PORT: String(port), LOG_LEVEL: 'warn', ...PATIENT, ...environment }
    const program = await launchService(t, settings, release)
    await until('the instance is ready', async () => {
      if (program.process.exitCode !== null) throw new Error(program.said())
      return await fetch(`http://127.0.0.1:${port}/health/ready`).then(
        ({ status }) => status === 200,
        () => false,
      )
    })
    return program
  }
  let program = await launch(first)
  const restart = async (otherwise: Start = first) => {
    const start = performance.now()
    t.equal(await program.end('SIGTERM'), 0, 'exit code')
    t.comment(`ended within ${Math.round(performance.now() - start)} ms of SIGTERM`)
    program = await launch(otherwise)
  }
  return { port, restart, end: () => program.end('SIGTERM') }
}
