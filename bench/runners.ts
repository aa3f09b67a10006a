import type { BenchDatabase } from './database.ts'
import { databaseAlone } from './database-alone.ts'
import { generateLoad, type LoadOptions, type WireRequest, wireRequest } from './load-generator.ts'
import type { Load } from './loads.ts'
import { cpuOf, cpuOfFamily, peakMemory, resetPeak } from './processes.ts'
import type { ServerProcess } from './server-process.ts'
import { percentile } from './statistics.ts'
import type { Ask, Target } from './targets.ts'

/** What one round of one load found. */
export interface Sample {
  /** Requests per second. */
  rate: number
  /** Milliseconds. */
  p50?: number | undefined
  p99?: number | undefined
  /** Processor time per request, in ms. */
  serverCpu?: number
  databaseCpu?: number
  /** The server's most memory at once, in MB. */
  memory?: number | undefined
  /** Requests that were turned away for overload. */
  refused?: number
}

/** One line of the table: a load on a target, to be run as often as one likes. */
export interface Runner {
  load: Load
  target: string
  run(durationMs: number): Promise<Sample | undefined>
  /** Until Node has compiled what it runs often, or for as long as is given. */
  warmUp(mostMs: number): Promise<unknown>
}

export interface Scene {
  database: BenchDatabase
  /** The service first. */
  targets: Target[]
  storedAnswer: ServerProcess
}

export const HTTP_LIMIT = 'node:http, a stored answer'
export const DATABASE_LIMIT = 'the database alone'

/** Everything that can be measured: each load on each target that knows it, and on the limits. */
export async function makeRunners(scene: Scene, loads: Load[]): Promise<Runner[]> {
  const runners: Runner[] = []
  for (const load of loads) {
    for (const target of scene.targets) {
      const requests = await load.requests(target)
      if (!requests) continue
      runners.push(serverRunner(scene.database, load, { ...target, requests }))
    }
    if (load.asks)
      runners.push(await httpLimit(scene, load, load.asks), databaseLimit(scene, load, load.asks))
  }
  return runners
}

const WARM_REQUESTS = 2_000

/** A load on a server that runs by itself. */
export function serverRunner(
  database: BenchDatabase,
  load: Load,
  { name, server, requests }: Pick<Target, 'name' | 'server'> & { requests: WireRequest[] },
): Runner {
  const { clients } = load
  const { port } = server
  return {
    load,
    target: name,
    run: (durationMs) => runServer(database, server, { port, clients, requests, durationMs }),
    warmUp: (durationMs) =>
      generateLoad({
        port,
        clients,
        requests,
        durationMs,
        // Each page of the disk is to have been read once, too.
        atMost: Math.max(WARM_REQUESTS, requests.length),
      }),
  }
}

async function runServer(
  database: BenchDatabase,
  { pid }: ServerProcess,
  options: LoadOptions,
): Promise<Sample> {
  resetPeak(pid)
  const before = { server: cpuOf(pid), database: databaseTime(database) }
  const load = await generateLoad(options)
  return {
    rate: load.rate,
    p50: percentile(load.latencies, 0.5),
    p99: percentile(load.latencies, 0.99),
    serverCpu: (cpuOf(pid) - before.server) / load.requests,
    databaseCpu: (databaseTime(database) - before.database) / load.requests,
    memory: peakMemory(pid),
    refused: load.refused,
  }
}

const databaseTime = ({ pid }: BenchDatabase) => (pid === undefined ? Number.NaN : cpuOfFamily(pid))

/** HTTP with an answer of the size of the service's. */
async function httpLimit(scene: Scene, load: Load, [ask]: Ask[]): Promise<Runner> {
  const [service] = scene.targets
  if (!service || !ask) throw new Error('the service comes first')
  const url = `http://127.0.0.1:${service.server.port}${service.page(ask)}`
  const answer = await fetch(url, { headers: service.headers(ask.connection) })
  const { byteLength } = await answer.bytes()
  const requests = [wireRequest(`/${byteLength}`)]
  return serverRunner(scene.database, load, {
    name: HTTP_LIMIT,
    server: scene.storedAnswer,
    requests,
  })
}

function databaseLimit({ database }: Scene, load: Load, asks: Ask[]): Runner {
  const run = async (ms: number) => {
    // pgbench counts in whole seconds.
    const seconds = Math.max(1, Math.round(ms / 1000))
    const before = databaseTime(database)
    const options = { clients: load.clients, seconds }
    const found = await databaseAlone(database.serviceUrl, asks, options)
    if (!found) return undefined
    return { rate: found.rate, databaseCpu: (databaseTime(database) - before) / found.requests }
  }
  return { load, target: DATABASE_LIMIT, run, warmUp: async () => {} }
}
