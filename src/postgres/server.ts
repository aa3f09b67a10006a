import { ask, type ConnectOptions } from './connect.ts'
import { ServerFailed } from './failures.ts'
import { Hosts } from './hosts.ts'
import { Pool } from './pool.ts'
import type { Reader } from './reader.ts'
import type { Parameter, Statement } from './statements.ts'
import type { WireClient } from './wire/client.ts'
import type { RawRows } from './wire/query.ts'

export interface ServerOptions extends ConnectOptions {
  size: number
  /** Called with `host:port` after a failover to another host of the URL. */
  onFailover?: ((server: string) => void) | undefined
}

/** State of the two pools of a server together. */
export interface ServerState {
  connections: number
  inUse: number
  waiting: number
  /** Time since the last response, also an error, in ms. */
  quietMs: number
  /** True if the server recently responded to a request. A health check may wait behind slow ones. */
  responding: boolean
}

/** Part of the connections for large reads. Each of them keeps a processor of PostgreSQL busy. */
const LARGE_SHARE = 0.1
/** Minimum of them: the large reads of one app leave one connection to those of the others. */
const LEAST_LARGE = 2
/** Returns how many connections to a server are for small and for large reads, of this many: at least three together. */
export function poolSizes(size: number): { small: number; large: number } {
  const large = Math.max(LEAST_LARGE, Math.ceil(size * LARGE_SHARE))
  return { small: Math.max(1, size - large), large }
}

/** Time after the statement timeout at which a server counts as down, in ms. */
const GRACE_MS = 1_000
/** Maximum duration of a probe, in ms: orchestrators usually wait one second for a health check. */
export const PROBE_MS = 800

/** A server with two pools: large reads have few connections, so that small ones do not wait behind them. */
export class Server {
  readonly #pooler: boolean
  readonly #silentMs: number
  readonly #hosts: Hosts
  readonly #small: Pool
  readonly #large: Pool

  /** It connects when it is first read. */
  constructor(options: ServerOptions) {
    const { size, pooler, statementTimeoutMs, onFailover } = options
    this.#pooler = pooler
    this.#silentMs = statementTimeoutMs + GRACE_MS
    this.#hosts = new Hosts(options, (server) => {
      this.#small.abandon()
      this.#large.abandon()
      onFailover?.(server)
    })
    const sizes = poolSizes(size)
    const usual = {
      waitMs: statementTimeoutMs,
      pooler,
      silentMs: this.#silentMs,
      isInUse: (client: WireClient) => this.#hosts.isInUse(client),
    }
    this.#small = new Pool({ ...usual, size: sizes.small }, () => this.#hosts.connect())
    const largeOptions = { ...usual, size: sizes.large, isLarge: true }
    this.#large = new Pool(largeOptions, () => this.#connectForLargeReads())
  }

  /** Runs a SELECT of a request. @throws Unavailable if no response arrives in time */
  read(statement: Statement, values: Parameter[], reader: Reader): Promise<RawRows> {
    const pool = reader.isLarge && !statement.singleRow ? this.#large : this.#small
    return pool.read(statement, values, reader)
  }

  /** Runs a statement of a health check or metric, ahead of all requests. @throws Unavailable */
  async probe(statement: Statement, values: Parameter[]): Promise<RawRows> {
    try {
      return await this.#small.probe(statement, values, PROBE_MS)
    } catch (error) {
      // A server that hangs accepts no new connection either, and another host may be the primary.
      if (error instanceof ServerFailed) this.#hosts.follow().catch(() => {})
      throw error
    }
  }

  state(): ServerState {
    const quietMs = performance.now() - Math.max(this.#small.respondedAt, this.#large.respondedAt)
    const small = this.#small.state()
    const large = this.#large.state()
    return {
      connections: small.connections + large.connections,
      inUse: small.inUse + large.inUse,
      waiting: small.waiting + large.waiting,
      quietMs,
      responding: quietMs < this.#silentMs,
    }
  }

  /** Replaces all connections. @throws Error if no new one can be opened; the others then stay */
  async renew(): Promise<void> {
    const client = await this.#hosts.connect()
    client.end()
    this.#small.renew()
    this.#large.renew()
  }

  close(): void {
    this.#small.close()
    this.#large.close()
  }

  async #connectForLargeReads(): Promise<WireClient> {
    const client = await this.#hosts.connect()
    // PostgreSQL then ends the statement of a closed connection. Some systems do not support it.
    if (!this.#pooler)
      await ask(client, `set client_connection_check_interval = '1s'`).catch(() => {})
    return client
  }
}
