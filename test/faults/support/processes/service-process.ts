import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../../../tools/embedded-postgres/free-port.ts'
import { until } from '../../../support/until.ts'
import { type Program, startProgram } from './program.ts'
import { thisRelease } from './release.ts'

/** The service as an operator starts it: a process of its own. */
export interface ServiceProcess extends Program {
  /** http://127.0.0.1:port */
  url: string
  port: number
  /** The status of /health/ready, 0 where nobody listens. */
  ready(): Promise<number>
}

/** Starts it with no settings but those given, and waits until it listens. */
export async function startServiceProcess(
  t: Test,
  environment: Record<string, string>,
): Promise<ServiceProcess> {
  const port = await freePort()
  const program = await launchService(t, { LOG_LEVEL: 'warn', PORT: String(port), ...environment })
  const url = `http://127.0.0.1:${port}`
  await until('the service is live', async () => {
    if (program.process.exitCode !== null) throw new Error(program.said())
    return (await statusOf(`${url}/health/live`)) === 200
  })
  return { ...program, url, port, ready: () => statusOf(`${url}/health/ready`) }
}

/** The same for one that may refuse to start, or whose release lies in another folder. */
export function launchService(
  t: Test,
  environment: Record<string, string>,
  release = thisRelease,
): Promise<Program> {
  const args = ['--disable-warning=ExperimentalWarning', join(release, 'src/server.ts')]
  return startProgram(t, { command: process.execPath, package: 'nodejs', args, environment })
}

/** A supervisor may give up after a second; here, clients keep the same machine busy. */
async function statusOf(url: string): Promise<number> {
  const patience = AbortSignal.timeout(5_000)
  return await fetch(url, { signal: patience, headers: { connection: 'close' } }).then(
    (answer) => answer.status,
    () => 0,
  )
}

/** The most memory that the process has ever had, in MB. */
export async function peakMemory({ process }: ServiceProcess): Promise<number> {
  const status = await readFile(`/proc/${process.pid}/status`, 'utf8')
  return Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024)
}
