import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startDrivers } from '../support/clients/drivers.ts'
import {
  changeHistory,
  copyEvents,
  type Event,
  localEvents,
  Model,
  openSite,
  type Site,
} from '../support/model/history.ts'
import { runShell } from '../support/processes/shell.ts'
import {
  type DebianPostgres,
  firstValue,
  migrate,
  onPort,
  startDebianPostgres,
  startOtherPostgres,
  startStandby,
} from '../support/servers/debian-postgres.ts'
import { databaseUrl, onServer } from '../support/template.ts'
import { until } from '../support/until.ts'

t.setTimeout(600_000)

/** Statements of each writer before and after the beginning of an event. */
const ROUNDS = 6

t.test('PostgreSQL 15: no copy is wrong, and only lost cursors expire', async (t) => {
  const settings = { wal_level: 'logical' }
  const first = await startDebianPostgres(t, settings)
  await onServer(first.url, 'create database investments')
  const url = databaseUrl(first.url, 'investments')
  await migrate(url)
  t.match(await firstValue(url, 'show server_version'), /^15\./)
  const model = new Model(await openSite(t, url), {
    drivers: startDrivers(t),
    file: join(t.testdir({}), 'copies.db'),
  })
  await model.start()
  const events = [...localEvents, ...copyEvents(t), ...serverEvents(t, first, settings)]
  await changeHistory(t, model, events, ROUNDS)
  t.ok(model.polls > 3_000, `${model.polls} polls`)
  await model.site.service.close()
})

/** Events that need another server, or tools of PostgreSQL. */
function serverEvents(t: Test, first: DebianPostgres, settings: Record<string, string>): Event[] {
  let server = first
  let databases = 0
  const query = (each: DebianPostgres, text: string) => firstValue(each.url, text)
  const moveTo = async ({ service }: Site, url: string) => {
    await service.close()
    return openSite(t, url)
  }
  const promote = async (site: Site, standby: DebianPostgres) => {
    // The commits of the teardown must not wait for the standby.
    await query(server, 'alter system reset synchronous_standby_names')
    await query(server, 'select pg_reload_conf()')
    await query(standby, 'select pg_promote()')
    server = standby
    return moveTo(site, onPort(site.url, standby.port))
  }
  const dump = async (url: string) => {
    databases += 1
    const file = `${server.data}/../${databases}.dump`
    await runShell(t, `pg_dump --format custom --file '${file}' '${url}'`)
    return file
  }
  const restore = async (site: Site, file: string) => {
    const url = databaseUrl(server.url, `restored_${databases}`)
    await onServer(server.url, `create database restored_${databases}`)
    await runShell(t, `pg_restore --exit-on-error --single-transaction --dbname '${url}' '${file}'`)
    return moveTo(site, url)
  }
  const isCaughtUp = async (standby: DebianPostgres) => {
    const lsn = await query(server, 'select pg_current_wal_lsn()')
    return (await query(standby, `select pg_last_wal_replay_lsn() >= '${lsn}'`)) === true
  }
  return [
    {
      name: 'promotion of a standby that has lost commits',
      loses: true,
      begin: async () => {
        const standby = await startStandby(t, server, settings)
        await until('the standby has caught up', () => isCaughtUp(standby))
        await query(standby, `alter system set primary_conninfo = ''`)
        await query(standby, 'select pg_reload_conf()')
        const receivers = 'select count(*)::int from pg_stat_wal_receiver'
        await until(
          'the replication has ended',
          async () => (await query(standby, receivers)) === 0,
        )
        return standby
      },
      end: (site, standby) => promote(site, standby as DebianPostgres),
    },
    {
      name: 'planned: promotion of a synchronous standby',
      begin: async () => {
        const standby = await startStandby(t, server, settings)
        await query(server, `alter system set synchronous_standby_names = 'standby'`)
        await query(server, 'select pg_reload_conf()')
        return standby
      },
      end: (site, standby) => promote(site, standby as DebianPostgres),
    },
    {
      name: 'recovery to a point in time',
      loses: true,
      begin: async () => {
        const target = { recovery_target_name: 'kept', recovery_target_action: 'promote' }
        const standby = await startStandby(t, server, { ...settings, ...target })
        await query(server, `select pg_create_restore_point('kept')`)
        return standby
      },
      end: async (site, recovered) => {
        server = recovered as DebianPostgres
        const isRecovered = async () =>
          (await query(server, 'select pg_is_in_recovery()')) === false
        await until('the server has recovered', isRecovered)
        return moveTo(site, onPort(site.url, server.port))
      },
    },
    {
      name: 'pg_dump restored',
      loses: true,
      begin: ({ url }) => dump(url),
      end: (site, file) => restore(site, String(file)),
    },
    {
      name: 'planned: pg_dump restored with all changes',
      end: async (site) => restore(site, await dump(site.url)),
    },
    {
      name: 'planned: logical replication to another server',
      begin: async ({ url }) => {
        const target = await startOtherPostgres(t, settings)
        const copy = onPort(url, target.port)
        await onServer(target.url, `create database ${new URL(url).pathname.slice(1)}`)
        await migrate(copy)
        const tables = await firstValue(
          url,
          `select string_agg(oid::regclass::text, ', ') from pg_class
           where relnamespace = 'public'::regnamespace and relkind = 'r' and relname !~ '^kysely'`,
        )
        await onServer(url, `create publication moved for table ${tables}`)
        await onServer(copy, `create subscription moved connection '${url}' publication moved`)
        return target
      },
      end: async (site, target) => {
        const next = target as DebianPostgres
        const copy = onPort(site.url, next.port)
        const pending = `select count(*)::int from pg_subscription_rel where srsubstate <> 'r'`
        await until('the tables are copied', async () => (await firstValue(copy, pending)) === 0)
        const sent = `select confirmed_flush_lsn >= '${await firstValue(site.url, 'select pg_current_wal_lsn()')}'
          from pg_replication_slots where slot_name = 'moved'`
        await until(
          'all changes have arrived',
          async () => (await firstValue(site.url, sent)) === true,
        )
        await onServer(copy, 'drop subscription moved')
        server = next
        return moveTo(site, copy)
      },
    },
  ]
}
