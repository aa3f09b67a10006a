import { Limits } from '../../src/limits/limits.ts'
import { MemoryAccount } from '../../src/limits/memory-account.ts'
import { Tenant } from '../../src/limits/tenants.ts'
import { Database } from '../../src/postgres/database.ts'
import type { Reader } from '../../src/postgres/reader.ts'
import { type Check, checkOf } from '../../src/postgres/readiness.ts'
import type { UsedReplica } from '../../src/postgres/replica-read.ts'
import type { RawRows } from '../../src/postgres/wire/query.ts'
import { type ObservedRead, Reads } from './reads.ts'
import type { Settings } from './schedule.ts'
import { keepsSecrets, SECRETS } from './secrets.ts'
import type { ServiceFaults } from './world/faults.ts'
import { SimulatedSocket } from './world/link.ts'
import type { Network } from './world/network.ts'
import { PROBED, type ReadName, type ReadParameters, reads, valuesOf } from './world/statements.ts'
import type { World } from './world/world.ts'

export const STATEMENT_MS = 2_000
/** Lists that a health check reads. */
const LISTS = ['transactions', 'orders', 'others']
/** The login of the service, until its secrets are renewed. */
export const FIRST_USER = 'service'

const urlOf = (hosts: string[], user: string) =>
  `postgres://${user}:${SECRETS.password}@${hosts.map((host) => `${host}:5432`).join(',')}/data`

/** The code under test: its databases and limits, as the service opens them. */
export class Service implements ServiceFaults {
  readonly world: World
  readonly network: Network
  readonly settings: Settings
  readonly db: Database
  readonly limits: Limits
  readonly reads: Reads
  readonly check: () => Promise<Check>
  /** Latest timeline that it has moved to. */
  movedTo = 0
  /** Host of the primary that it has moved to. */
  usedHost: string | undefined
  /** Requests that have not ended, and reads whose end the code has reported. */
  open = 0
  endedReads = 0
  /** True at the end: nothing is checked any more. */
  isClosed = false
  /** Called when all clients leave. */
  readonly leaving = new Set<() => void>()
  #user = FIRST_USER
  #users = 0

  constructor(world: World, network: Network, settings: Settings) {
    this.world = world
    this.network = network
    this.settings = settings
    this.limits = new Limits(60, settings.memoryMb * 2 ** 20)
    this.reads = new Reads(world, network)
    this.db = new Database({
      url: this.#urls().url,
      replicaUrl: this.#urls().replicaUrl,
      newestUrls: () => this.#urls(),
      size: settings.size,
      statementTimeoutMs: STATEMENT_MS,
      pooler: settings.pooler !== 'none',
      createSocket: () => new SimulatedSocket(network),
      onFailover: (server) => this.#moved(server),
      onReplicaChange: (name, reason) => this.#report('replica', `${name} ${reason}`),
    })
    const probe = { statement: PROBED, values: [] }
    const probes = LISTS.map((list) => ({ list, reads: [probe] }))
    this.check = checkOf(this.db, probes, (list, cause) => this.#report('list', `${list} ${cause}`))
  }

  #urls(): { url: string; replicaUrl: string | undefined } {
    const { hosts, hasReplica } = this.settings
    const url = urlOf(hosts === 1 ? ['one'] : ['one', 'two'], this.#user)
    return { url, replicaUrl: hasReplica ? urlOf(['replica'], this.#user) : undefined }
  }

  #report(event: string, message: string): void {
    keepsSecrets(this.world, message)
    this.world.journal.record(event, message)
  }

  #moved(server: string): void {
    const host = this.network.hosts.find(({ name }) => server.startsWith(name))
    this.usedHost = host?.name
    this.movedTo = Math.max(this.movedTo, host?.timeline ?? 0)
    this.#report('moves', server)
  }

  /** Reads from the primary. */
  read(name: ReadName, parameters: ReadParametersOf, reader: Reader): Promise<RawRows> {
    const run: Run = (...query) => this.db.read(...query)
    return this.#read(name, 'primary', parameters, reader, run) as Promise<RawRows>
  }

  /** Returns the replica, whose next read is this one. */
  observe(
    replica: UsedReplica,
    name: ReadName,
    parameters: ReadParametersOf,
    reader: Reader,
  ): UsedReplica {
    return {
      name: replica.name,
      read: () =>
        this.#read(name, 'replica', parameters, reader, (...query) => replica.read(...query)),
      compared: (isCurrent) => replica.compared(isCurrent),
    }
  }

  readEnded(): void {
    this.endedReads += 1
  }

  failed(error: unknown): void {
    for (let each = error; each instanceof Error; each = each.cause)
      keepsSecrets(this.world, `${each.message} ${each.stack}`)
  }

  async #read(
    name: ReadName,
    server: ObservedRead['server'],
    parameters: ReadParametersOf,
    reader: Reader,
    run: Run,
  ): Promise<RawRows | undefined> {
    const statement = reads[name]
    const observed = this.reads.begin({
      title: name,
      app: reader.tenant.appId ?? 'unknown',
      reader,
      rows: parameters.rows,
      ownError: parameters.failure?.code,
      server,
      isLarge: reader.isLarge && !reads[name].singleRow,
      timeline: this.movedTo,
    })
    const values = valuesOf({ ...parameters, token: SECRETS.token, id: observed.id })
    return await this.reads.follow(observed, run(statement, values, reader))
  }

  fillMemory(): () => void {
    const { memory } = this.limits
    const account = new MemoryAccount(memory, { tenant: new Tenant('other') })
    account.count(Math.max(0, memory.limit - memory.used))
    return () => account.close(false)
  }

  leave(): void {
    for (const leave of [...this.leaving]) leave()
  }

  renewSecrets(_host: unknown, announces: boolean): void {
    this.#users += 1
    const user = `service_${this.#users}`
    for (const host of this.network.hosts) host.user = user
    this.#user = user
    if (announces) this.db.renew().catch((error: Error) => this.#report('renewal', error.message))
  }
}

type Run = (...query: Parameters<Database['read']>) => Promise<RawRows | undefined>
type ReadParametersOf = Omit<ReadParameters, 'token' | 'id'>
