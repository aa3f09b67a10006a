import type { SessionsOptions } from './pool.ts'
import { openReplica, type Replica, type ReplicaState, watchReplicas } from './replicas.ts'
import { AnswerMemory, Holding } from './response-memory.ts'
import { type HostState, openHost } from './server.ts'
import type { Parameter, Statement } from './statements.ts'
import type { RawRows } from './wire/raw-rows.ts'

/**
 * The URLs of a list: several URLs with commas between, of which each may name several hosts as
 * PostgreSQL's own programs read them (`postgres://user@one:5432,two:5433/database`).
 */
function hostUrls(list: string | undefined): string[] {
  if (list === undefined) return []
  return list.split(/,(?=postgres(?:ql)?:\/\/)/).flatMap((url) => {
    const [, before = '', hosts = '', after = ''] = SEVERAL_HOSTS.exec(url) ?? []
    return hosts.split(',').map((host) => before + host + after)
  })
}

const SEVERAL_HOSTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]+)(.*)$/

/** Something that looks on while a statement runs: it calls `run` once, and returns what that does. */
export type Watch = <T>(statement: string, run: () => Promise<T>) => Promise<T>

/** The same database, with each read of a request under the eyes of those who watch. */
export function watchReads(db: Database, watches: Watch[]): Database {
  return watches.reduce(watchedBy, db)
}

function watchedBy(db: Database, watch: Watch): Database {
  return {
    ...db,
    read: (statement, ...rest) => watch(statement.title, () => db.read(statement, ...rest)),
    replica: (key) => {
      const replica = db.replica(key)
      if (replica === undefined) return undefined
      return {
        ...replica,
        read: (statement, ...rest) =>
          watch(statement.title, () => replica.read(statement, ...rest)),
      }
    },
  }
}

/** All that the service needs of PostgreSQL. */
export interface Database {
  /**
   * Runs a SELECT on the primary.
   * @param holding the request's, where the answer can be large; see hold()
   * @throws DatabaseUnavailable when no answer can be had within the time that a request has
   */
  read(statement: Statement, values: Parameter[], holding?: Holding): Promise<RawRows>
  /** Runs one of the service's own questions, beside the requests and not behind them. */
  probe(statement: Statement, values: Parameter[]): Promise<RawRows>
  /** A replica for the rows of a connection, by the hash of its token; undefined where there is none. */
  replica(key: Buffer): Replica | undefined
  /**
   * Opens the account of a request that may answer with so many rows: whoever does it has to end it.
   * @param since when it began, on performance.now()'s clock
   */
  hold(rows: number, since: number): Holding
  state(): DatabaseState
  /** Has a function called whenever a replica is left out or taken in again, and for what is known now. */
  onReplicaChange(listener: (replica: ReplicaState) => void): void
  close(): Promise<void>
}

/** Plain figures, for metrics and for readiness. */
export interface DatabaseState {
  primary: HostState
  replicas: ReplicaState[]
  /** Bytes of answers that are under way, and how many may be. */
  answerBytes: number
  answerBytesLimit: number
}

export interface DatabaseOptions extends SessionsOptions {
  /** How many requests may wait for a connection. */
  queue?: number
  /** How many bytes of answers may be under way. */
  answerBytes?: number
  /** Standbys to read from, as hostUrls() reads them. */
  replicaUrl?: string | undefined
  replicaMaxLagMs?: number
}

export function openDatabase(options: DatabaseOptions): Database {
  const { queue = 200, answerBytes = 288 * 2 ** 20, replicaMaxLagMs = 5_000 } = options
  const memory = new AnswerMemory(answerBytes)
  const host = { ...options, queue, heavyPlaces: Math.ceil(options.size * HEAVY_SHARE) }
  const primary = openHost(host)
  let listener: (replica: ReplicaState) => void = () => {}
  const all = hostUrls(options.replicaUrl).map((url) =>
    openReplica({
      ...host,
      url,
      maxLagMs: replicaMaxLagMs,
      onChange: (state) => listener(state),
    }),
  )
  const replicas = watchReplicas(primary, all, Math.min(MOST_MS_BETWEEN_LOOKS, replicaMaxLagMs / 4))
  return {
    read: primary.read,
    probe: primary.probe,
    replica: replicas.nearest,
    hold: (rows, since) => new Holding(memory, rows, since),
    state: () => ({
      primary: primary.state(),
      replicas: all.map((replica) => replica.state()),
      answerBytes: memory.used,
      answerBytesLimit: memory.limit,
    }),
    onReplicaChange: (told) => {
      listener = told
      for (const replica of all) told(replica.state())
    },
    close: async () => {
      replicas.close()
      await Promise.all([primary, ...all].map((server) => server.close()))
    },
  }
}

/** The part of the connections that heavy requests may have at the same time. */
const HEAVY_SHARE = 0.1
const MOST_MS_BETWEEN_LOOKS = 500
