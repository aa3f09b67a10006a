import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BenchDatabase } from '../data/database.ts'
import type { Fixture } from '../servers/fixture.ts'
import { cpuOf, cpuOfFamily, familyOf, peakMemory, resetPeak } from '../servers/process-usage.ts'
import type { ServerProcess } from '../servers/server-process.ts'
import { addressOf, type PageQuery } from '../servers/targets.ts'
import { databaseAlone } from './database-alone.ts'
import {
  generateConstantLoad,
  generateLoad,
  type LoadOptions,
  type LoadResult,
  type WireRequest,
  WrongResponse,
  wireRequest,
} from './load-generator.ts'
import type { Load } from './loads.ts'
import { percentile } from './statistics.ts'

/** Figures of one round of one load. */
export interface Sample {
  /** Requests per second. */
  rate: number
  /** Milliseconds. */
  p50?: number | undefined
  p99?: number | undefined
  /** Processor time per request, in ms. */
  serverCpu?: number
  databaseCpu?: number
  /** Peak memory of the server, in MB. */
  memory?: number | undefined
  /** Requests that the server rejected for overload. */
  rejected?: number
}

/** One line of the table: a load on a target, repeatable. */
export interface Runner {
  load: Load
  target: string
  run(durationMs: number): Promise<Sample | undefined>
  /** Runs without a measurement, so that Node.js compiles the hot functions and every page was read once. */
  warmUp(durationMs: number): Promise<unknown>
}

export const HTTP_LIMIT = 'node:http, a stored response'
export const PGBENCH = 'pgbench, the same statements'

/** Combines each load with each target that supports it, and with the limits. */
export async function makeRunners(fixture: Fixture, loads: Load[]): Promise<Runner[]> {
  const runners: Runner[] = []
  for (const load of loads) {
    for (const target of [fixture.service, ...fixture.compared]) {
      const requests = await load.requests(target)
      if (!requests) continue
      const runner = serverRunner(fixture.database, load, target, requests)
      const isOwn = target === fixture.service || target.hasSameBytes
      runners.push(isOwn ? runner : withoutWrongRounds(runner))
    }
    if (load.queries) {
      runners.push(await httpLimit(fixture, load, load.queries))
      if (!load.busyLoops) runners.push(pgbenchRunner(fixture.database, load, load.queries))
    }
  }
  return runners
}

/** A round in which a server of others sends a wrong response is left out. The rounds of all other servers stay. */
function withoutWrongRounds(runner: Runner): Runner {
  const unlessWrong = <T>(round: Promise<T>) =>
    round.catch((error: unknown) => {
      if (!(error instanceof WrongResponse)) throw error
      process.stderr.write(`${runner.target}: ${error.message}\n`)
      return undefined
    })
  return {
    ...runner,
    run: (durationMs) => unlessWrong(runner.run(durationMs)),
    warmUp: (durationMs) => unlessWrong(runner.warmUp(durationMs)),
  }
}

/** Runs a load on one server, or on the processes `pids` behind one port. */
export function serverRunner(
  database: BenchDatabase,
  load: Load,
  server: Pick<ServerProcess, 'port' | 'pid'> & { name: string; pids?: number[] },
  requests: WireRequest[],
): Runner {
  const { name, port, pid, pids = [pid] } = server
  const { clients, busyLoops = 0 } = load
  const send = (durationMs: number) => generateLoad({ port, clients, requests, durationMs })
  return {
    load,
    target: name,
    run: (durationMs) =>
      besideBusyLoops(busyLoops, () => runServer(database, pids, () => send(durationMs))),
    warmUp: send,
  }
}

/** Connections of a load at a constant rate: more than are needed, so that a request waits for the server only. */
const CONSTANT_CLIENTS = 64

/** Runs a load on one server at a constant rate. @param perSecond requests per second */
export function constantRunner(
  database: BenchDatabase,
  load: Load,
  server: Pick<ServerProcess, 'port' | 'pid'> & { name: string },
  requests: WireRequest[],
  perSecond: number,
): Runner {
  const { name, port, pid } = server
  const send = (durationMs: number): Promise<LoadResult> => {
    const options: LoadOptions = { port, clients: CONSTANT_CLIENTS, requests, durationMs }
    return generateConstantLoad(options, perSecond)
  }
  return {
    load,
    target: name,
    run: (durationMs) => runServer(database, [pid], () => send(durationMs)),
    warmUp: send,
  }
}

/** Runs other processes that always want a processor, as other programs of a machine do. */
async function besideBusyLoops<T>(count: number, measured: () => Promise<T>): Promise<T> {
  const loops = Array.from({ length: count }, () => spawn('sh', ['-c', 'while :; do :; done']))
  try {
    return await measured()
  } finally {
    for (const loop of loops) loop.kill('SIGKILL')
  }
}

async function runServer(
  database: BenchDatabase,
  pids: number[],
  send: () => Promise<LoadResult>,
): Promise<Sample> {
  const server = pids.flatMap(familyOf)
  const serverTime = () => server.reduce((sum, each) => sum + cpuOf(each), 0)
  for (const each of server) resetPeak(each)
  const before = { server: serverTime(), database: databaseTime(database) }
  const load = await send()
  return {
    rate: load.rate,
    p50: percentile(load.latencies, 0.5),
    p99: percentile(load.latencies, 0.99),
    serverCpu: (serverTime() - before.server) / load.requests,
    databaseCpu: (databaseTime(database) - before.database) / load.requests,
    memory: server.reduce((sum, each) => sum + (peakMemory(each) ?? 0), 0),
    rejected: load.rejected,
  }
}

/** Time in which the sessions of pgbench have ended after it, in ms. */
const SESSION_END_MS = 300

const databaseTime = ({ pid }: BenchDatabase) => (pid === undefined ? Number.NaN : cpuOfFamily(pid))

/** HTTP with a response of the service's size. */
async function httpLimit(fixture: Fixture, load: Load, [query]: PageQuery[]): Promise<Runner> {
  const { service, storedResponse, database } = fixture
  if (!query) throw new Error(`load ${load.key} has no query`)
  const headers = service.headers(query.connection)
  const response = await fetch(addressOf(service, service.page(query)), { headers })
  const { byteLength } = await response.bytes()
  const target = { ...storedResponse, name: HTTP_LIMIT }
  return serverRunner(database, load, target, [wireRequest(`/${byteLength}`)])
}

/** Runs the statements of a load with pgbench. */
export function pgbenchRunner(database: BenchDatabase, load: Load, queries: PageQuery[]): Runner {
  const run = async (ms: number) => {
    // pgbench counts in whole seconds.
    const seconds = Math.max(1, Math.round(ms / 1000))
    const before = databaseTime(database)
    const options = { clients: load.clients, seconds }
    const found = await databaseAlone(database.serviceUrl, queries, options)
    if (!found) return undefined
    // A session that ends while the times of all processes are read counts nowhere.
    await sleep(SESSION_END_MS)
    return { rate: found.rate, databaseCpu: (databaseTime(database) - before) / found.requests }
  }
  return { load, target: PGBENCH, run, warmUp: async () => {} }
}
