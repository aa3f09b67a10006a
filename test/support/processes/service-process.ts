import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { until } from '../until.ts'
import { type Program, startProgram } from './program.ts'
import { thisRelease } from './release.ts'

/** The service in a separate process, as an operator starts it. */
export interface ServiceProcess extends Program {
  /** http://127.0.0.1:port, or with the address of HOST */
  url: string
  port: number
  /** Status of /health/ready; 0 without a response. */
  ready(): Promise<number>
}

/** Port of the metrics and the health checks of a service, by its port. */
const healthPorts = new Map<number, number>()
export const healthPortOf = (port: number, other = port) => healthPorts.get(port) ?? other

/** Starts the service with these settings only, and waits until it is live. */
export async function startServiceProcess(
  t: Test,
  environment: Record<string, string>,
  release?: string,
  stdout?: number,
): Promise<ServiceProcess> {
  const port = Number(environment.PORT ?? (await freePort()))
  const METRICS_PORT = environment.METRICS_PORT ?? String(healthPortOf(port, await freePort()))
  healthPorts.set(port, Number(METRICS_PORT))
  const settings = { LOG_LEVEL: 'warn', PORT: String(port), METRICS_PORT, ...environment }
  const program = await launchService(t, settings, release, stdout)
  const url = `http://${environment.HOST ?? '127.0.0.1'}:${port}`
  await until('the service is live', async () => {
    if (program.process.exitCode !== null) throw new Error(program.output())
    return (await statusOf(`${url}/health/live`)) === 200
  })
  return { ...program, url, port, ready: () => statusOf(`${url}/health/ready`) }
}

/** Starts the service without waiting, for one that may refuse to start. */
export function launchService(
  t: Test,
  environment: Record<string, string>,
  release = thisRelease,
  stdout?: number,
): Promise<Program> {
  const args = ['--disable-warning=ExperimentalWarning', join(release, scriptOf(release))]
  const variables = { ...environment }
  // An eighth less processor time: Node.js does not resolve the links of 900 modules. In the copy of a release, the folder of
  // the packages is a link, and Node.js would compile them again.
  if (release === thisRelease) variables.NODE_PRESERVE_SYMLINKS = '1'
  const options = {
    command: process.execPath,
    package: 'nodejs',
    args,
    environment: variables,
    stdout,
  }
  const { NODE_V8_COVERAGE } = process.env
  if (NODE_V8_COVERAGE === undefined) return startProgram(t, options)
  // V8 writes no coverage if SIGKILL ends the process.
  const covered = { ...variables, NODE_V8_COVERAGE }
  return startProgram(t, { ...options, environment: covered, lastSignal: 'SIGINT' })
}

/** First file of a release, as its `npm start` has it. */
function scriptOf(release: string): string {
  const { scripts } = JSON.parse(readFileSync(join(release, 'package.json'), 'utf8'))
  return String(scripts.start).split(' ').at(-1) ?? ''
}

/** Waits until /health/ready of a service has this status. */
export function untilReadyIs({ url }: { url: string }, status: 200 | 503): Promise<void> {
  const hasStatus = async () => (await statusOf(`${url}/health/ready`)) === status
  return until(`/health/ready is ${status}`, hasStatus)
}

/** The limit is longer than that of a supervisor: the clients keep the same machine busy. */
async function statusOf(url: string): Promise<number> {
  const signal = AbortSignal.timeout(5_000)
  return await fetch(url, { signal, headers: { connection: 'close' } }).then(
    ({ status }) => status,
    () => 0,
  )
}

/** Peak memory of the process in MB. */
export async function peakMemory({ process }: ServiceProcess): Promise<number> {
  const status = await readFile(`/proc/${process.pid}/status`, 'utf8')
  return Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024)
}
