import { type Kysely, sql } from 'kysely'
import type { Test } from 'tap'
import type { Tables } from '../../../../src/postgres/tables.ts'
import { openAsOwner } from '../../../support/logins.ts'
import { type Service, startService } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'
import { seedDemo } from '../demo-answers.ts'
import {
  type DebianPostgres,
  firstValue,
  migrateFor,
  onPort,
  startDebianPostgres,
  startStandby,
} from './debian-postgres.ts'

/** A primary with the sample data, and two hot standbys of it. */
export interface Servers {
  primary: DebianPostgres
  standbys: Standby[]
  /** The owner's view of the primary. */
  db: Kysely<Tables>
  /** Waits until the standbys have all that the primary has. */
  caughtUp(): Promise<void>
  /** The service on the primary, which reads from the standbys. */
  serve(t: Test, environment?: Record<string, string>): Promise<Service>
  /** The service's connection string for one of the servers. */
  login(server: DebianPostgres): string
}

export interface Standby extends DebianPostgres {
  /** The name by which the log knows it. */
  host: string
  /** Runs a statement on it as a superuser, and returns the first value. */
  ask(statement: string): Promise<unknown>
}

/** @param settings of the standbys */
export async function startServers(
  t: Test,
  settings?: Record<string, string | number>,
): Promise<Servers> {
  const primary = await startDebianPostgres(t)
  const loginOfPrimary = await migrateFor(primary.url)
  const db = openAsOwner(t, primary.url)
  await seedDemo(primary.url)
  const standbys = [await asked(t, primary, settings), await asked(t, primary, settings)]
  const list = standbys.map(({ port }) => `127.0.0.1:${port}`).join()
  const replicas = loginOfPrimary.replace(/127\.0\.0\.1:\d+/, list)
  return {
    primary,
    standbys,
    db,
    caughtUp: async () => {
      const { rows } = await sql<{ at: string }>`select pg_current_wal_lsn() as at`.execute(db)
      for (const { ask } of standbys) {
        const reached = `select pg_last_wal_replay_lsn() >= '${rows[0]?.at}'`
        await until('the standby has caught up', async () => (await ask(reached)) === true)
      }
    },
    serve: (t, environment) =>
      startService(t, {
        databaseUrl: primary.url,
        environment: {
          DATABASE_URL: loginOfPrimary,
          DATABASE_REPLICA_URL: replicas,
          ...environment,
        },
      }),
    login: ({ port }) => onPort(loginOfPrimary, port),
  }
}

async function asked(
  t: Test,
  primary: DebianPostgres,
  settings: Record<string, string | number> | undefined,
): Promise<Standby> {
  const standby = await startStandby(t, primary, settings)
  const ask = (statement: string) => firstValue(standby.url, statement)
  return { ...standby, host: `127.0.0.1:${standby.port}`, ask }
}

/** Waits until the service reads from the standby, or has left it out for that reason. */
export function standbyIs(service: Service, standby: Standby, state: string): Promise<void> {
  return until(`${standby.host} ${state}`, () =>
    service.database
      .state()
      .replicas.some(({ name, fault = 'read from' }) => name === standby.host && fault === state),
  )
}
