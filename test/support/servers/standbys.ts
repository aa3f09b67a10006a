import { type Kysely, sql } from 'kysely'
import type { Test } from 'tap'
import type { Tables } from '../../../src/postgres/tables.ts'
import { seedDemo } from '../golden-responses.ts'
import { openAsOwner } from '../logins.ts'
import { type Service, startService } from '../service.ts'
import { until } from '../until.ts'
import {
  type DebianPostgres,
  firstValue,
  migrate,
  onPort,
  startDebianPostgres,
  startStandby,
} from './debian-postgres.ts'

/** Primary with the demo data, and two hot standbys. */
export interface Servers {
  primary: DebianPostgres
  standbys: [Standby, Standby]
  /** Tables of the owner on the primary. */
  db: Kysely<Tables>
  /** Waits until the standbys have replayed all changes of the primary. */
  untilCaughtUp(): Promise<void>
  /** Starts the service on the primary with the standbys as replicas. */
  serve(t: Test, environment?: Record<string, string>): Promise<Service>
  /** Connection string of the service for one of the servers. */
  login(server: DebianPostgres): string
}

export interface Standby extends DebianPostgres {
  /** Name of the replica in the service. */
  host: string
  /** Runs a statement on it as a superuser and returns the first value. */
  query(statement: string): Promise<unknown>
}

type Settings = Record<string, string | number>

/** @param settings of the standbys */
export async function startServers(t: Test, settings?: Settings): Promise<Servers> {
  const primary = await startDebianPostgres(t)
  const primaryLogin = await migrate(primary.url)
  const db = openAsOwner(t, primary.url)
  await seedDemo(primary.url)
  const standbys: Servers['standbys'] = [
    await addStandby(t, primary, settings),
    await addStandby(t, primary, settings),
  ]
  const hosts = standbys.map(({ host }) => host).join()
  const replicas = primaryLogin.replace(/127\.0\.0\.1:\d+/, hosts)
  return {
    primary,
    standbys,
    db,
    untilCaughtUp: async () => {
      const { rows } = await sql<{ lsn: string }>`select pg_current_wal_lsn() as lsn`.execute(db)
      const replayed = `select pg_last_wal_replay_lsn() >= '${rows[0]?.lsn}'`
      for (const { query } of standbys)
        await until('the standby has caught up', async () => (await query(replayed)) === true)
    },
    serve: (t, environment) =>
      startService(t, {
        databaseUrl: primary.url,
        environment: {
          DATABASE_URL: primaryLogin,
          DATABASE_REPLICA_URL: replicas,
          ...environment,
        },
      }),
    login: ({ port }) => onPort(primaryLogin, port),
  }
}

async function addStandby(t: Test, primary: DebianPostgres, settings?: Settings): Promise<Standby> {
  const standby = await startStandby(t, primary, settings)
  const query = (statement: string) => firstValue(standby.url, statement)
  return { ...standby, host: `127.0.0.1:${standby.port}`, query }
}

/** Reason for which the service does not read from a standby; undefined while it does. */
export function exclusionOf(service: Service, { host }: Standby): string | undefined {
  const replica = service.database.state().replicas.find(({ name }) => name === host)
  return replica === undefined ? 'it is not a replica of the service' : replica.unusableReason
}

/** Waits until the service reads from the standby, or excludes it for this reason. */
export function untilStandbyIs(service: Service, standby: Standby, state: string): Promise<void> {
  return until(
    `${standby.host}: ${state}`,
    () => (exclusionOf(service, standby) ?? IN_USE) === state,
  )
}

export const IN_USE = 'in use'
