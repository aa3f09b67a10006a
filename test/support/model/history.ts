import { type Kysely, sql } from 'kysely'
import type pg from 'pg'
import type { Test } from 'tap'
import type { Tables } from '../../../src/postgres/tables.ts'
import type { Driver } from '../clients/drivers.ts'
import { accessOf, readList as readRows } from '../clients/service.ts'
import { readCopy, sorted } from '../clients/sqlite-copies.ts'
import { openPool } from '../database.ts'
import { type Random, randomOf, runs } from '../random.ts'
import { addCaller, addConnection, type Caller, type List, listNames, lists } from '../rows.ts'
import { type Service, startService } from '../service.ts'
import { cloneDatabase, databaseUrl, dropDatabase, onServer } from '../template.ts'
import {
  anyPage,
  type Copy,
  Expired,
  type Get,
  newCopy,
  readAll,
  readList,
  readPage,
  write,
} from './changes.ts'

/** Database with its service. */
export interface Site {
  url: string
  get: Get
  db: Kysely<Tables>
  pool: pg.Pool
  service: Service
}

export async function openSite(t: Test, url: string): Promise<Site> {
  const environment = { STATEMENT_TIMEOUT_MS: '60000' }
  const service = await startService(t, { databaseUrl: url, environment, logLevel: 'silent' })
  return { url, get: service.get, db: service.db, pool: openPool(t, url, { max: 6 }), service }
}

/** Versions of each connection in the present history, by the id of the connection. */
export type Known = Map<string, Set<string>>

/** What an event does to the history. The writers are at rest during `begin` and `end`. */
export interface Event {
  name: string
  /** True if all changes between `begin` and `end` are lost. */
  loses?: boolean
  /** Prepares the event, for example a backup. Then the writers change the data again. */
  begin?(site: Site): Promise<unknown>
  /** @returns the site that serves from now on, if it is another one */
  end(site: Site, prepared: unknown, model: Model): Promise<Site | undefined>
}

interface Reader {
  list: List
  caller: Caller
  copy: Copy
  random: Random
}

interface Figures {
  events: number
  cursors: number
  expired: number
}

/** Clients that keep copies of all connections in a file of SQLite. */
export interface Clients {
  drivers: Record<string, Driver>
  file: string
}

const CALLERS = Math.max(2, runs(3))
const COPIES = 3

/**
 * Writers, and readers that store cursors, while the history changes. The model knows the versions of each
 * connection, so it knows which cursors must expire.
 */
export class Model {
  readonly known: Known = new Map()
  readonly figures = new Map<string, Figures>()
  callers: Caller[] = []
  polls = 0
  comparisons = 0
  /** Wrong copies, and cursors that expired or did not, against the model. */
  readonly wrong: string[] = []
  site: Site
  readonly #clients: Clients | undefined
  readonly #readers: Reader[] = []
  #turn = 0
  /** For events and for what happens at rest. */
  readonly random = randomOf('events')
  readonly #ids = Array.from({ length: 30 }, this.random.uuid)

  constructor(site: Site, clients?: Clients) {
    this.site = site
    this.#clients = clients
  }

  async start(): Promise<void> {
    for (let number = 0; number < CALLERS; number += 1) {
      const caller = await addCaller(this.site.db)
      this.callers.push(caller)
      for (const list of listNames)
        for (let copy = 0; copy < COPIES; copy += 1)
          this.#readers.push({
            list,
            caller,
            copy: newCopy(),
            random: randomOf(`reader ${number} ${list} ${copy}`),
          })
    }
  }

  /** @param rounds statements of each writer before and after the beginning of the event */
  async run(event: Event, rounds: number): Promise<void> {
    await this.#work(rounds)
    await this.#recordVersions()
    const before = new Map([...this.known].map(([id, versions]) => [id, new Set(versions)]))
    const prepared = await event.begin?.(this.site)
    // The other readers keep their cursors from before the event.
    await this.#work(
      rounds,
      this.#readers.filter((_, index) => index % COPIES > 0),
    )
    await this.#recordVersions()
    // The copies of half of the connections have cursors that may be lost.
    await this.#copyByClients(this.callers.slice(1))
    if (event.loses) {
      this.known.clear()
      for (const [id, versions] of before) this.known.set(id, versions)
    }
    this.site = (await event.end(this.site, prepared, this)) ?? this.site
    await this.#recordVersions()
    await this.#pollAll(event.name)
    await this.compare(event.name)
    await this.#compareClients(event.name)
  }

  /** Each client refreshes its own copies, with one call for each connection. */
  async #copyByClients(callers: Caller[]): Promise<void> {
    const { drivers, file } = this.#clients ?? { drivers: {}, file: '' }
    for (const [name, driver] of Object.entries(drivers))
      for (const caller of callers)
        await driver.copy(
          accessOf(this.site.service, caller),
          file,
          `${name} ${caller.connection.token}`,
        )
  }

  async #compareClients(event: string): Promise<void> {
    const { drivers, file } = this.#clients ?? { drivers: {}, file: '' }
    await this.#copyByClients(this.callers)
    for (const caller of this.callers)
      for (const list of listNames) {
        const rows = String(sorted(await readRows(this.site.service, caller, list)))
        for (const name of Object.keys(drivers)) {
          const copy = readCopy(file, `${name} ${caller.connection.token}`, list)
          this.comparisons += 1
          if (String(sorted(copy)) !== rows) this.wrong.push(`${event}: a copy of ${name} is wrong`)
        }
      }
  }

  /** Writers and readers work at the same time. */
  async #work(rounds: number, awake = this.#readers): Promise<void> {
    let writing = true
    this.#turn += 1
    const writers = this.callers.flatMap((caller, number) =>
      listNames.map(async (list) => {
        const random = randomOf(`writer ${this.#turn} ${number} ${list}`)
        for (let round = 0; round < rounds; round += 1)
          await write(this.site, list, caller, this.#ids, round % 3, random)
      }),
    )
    const readers = awake.map(async (reader) => {
      do await this.#poll(reader, 'without an event')
      while (writing)
    })
    await Promise.all(writers).finally(() => {
      writing = false
    })
    await Promise.all(readers)
  }

  /** Reads a page. A reader that crashes keeps neither rows nor cursor. */
  async #poll({ list, caller, copy, random }: Reader, event: string): Promise<void> {
    const { version } = copy
    const mustExpire = version !== undefined && !this.known.get(caller.connection.id)?.has(version)
    this.polls += 1
    try {
      await readPage(this.site.get, list, caller, copy, anyPage(random, 0.2))
      if (mustExpire) this.wrong.push(`${event}: a lost cursor was accepted`)
      this.#record(caller, String(copy.version))
    } catch (error) {
      if (!(error instanceof Expired)) throw error
      if (!mustExpire) this.wrong.push(`${event}: a cursor expired`)
      const figures = this.figures.get(event)
      if (figures) figures.expired += 1
      Object.assign(copy, newCopy())
      delete copy.version
    }
  }

  async #pollAll(event: string): Promise<void> {
    const figures = this.figures.get(event) ?? { events: 0, cursors: 0, expired: 0 }
    this.figures.set(event, figures)
    figures.events += 1
    figures.cursors += this.#readers.filter(({ copy }) => copy.cursor !== 'start').length
    for (const reader of this.#readers) await this.#poll(reader, event)
  }

  /** Compares each copy with the list itself, at rest. */
  async compare(event: string): Promise<void> {
    for (const { list, caller, copy } of this.#readers) {
      const { totalItems } = await readAll(this.site.get, list, caller, copy)
      const expected = await readList(this.site.get, list, caller)
      const isEqual =
        copy.rows.size === totalItems &&
        copy.rows.size === expected.size &&
        [...expected].every(([id, row]) => copy.rows.get(id) === row)
      this.comparisons += 1
      if (!isEqual) this.wrong.push(`${event}: a copy is wrong`)
      // Some copies stay behind, in the middle of their pages.
      if (this.random.chance(0.3)) {
        Object.assign(copy, newCopy())
        delete copy.version
      }
    }
  }

  #record({ connection }: Caller, version: string): void {
    const versions = this.known.get(connection.id) ?? new Set()
    this.known.set(connection.id, versions.add(version))
  }

  async #recordVersions(): Promise<void> {
    for (const caller of this.callers) {
      const { headers } = await this.site.get(`${caller.connection.account}?limit=1`, caller)
      this.#record(caller, String(headers.get('data-version')))
    }
  }
}

/** Events that need nothing but the database. */
export const localEvents: Event[] = [
  {
    name: 'connection created again with its token',
    end: async ({ db }, _, model) => {
      const { appId, connection } = model.random.oneOf(model.callers)
      await db.deleteFrom('connection').where('id', '=', connection.id).execute()
      await addConnection(db, appId, connection.token)
      model.known.delete(connection.id)
      return undefined
    },
  },
  {
    name: 'TRUNCATE',
    end: async ({ db }, _, model) => {
      const list = model.random.oneOf(listNames)
      const { rows } = await sql<{ id: string }>`
        select distinct connection_id as id from ${sql.table(lists[list].table)}`.execute(db)
      await sql`truncate ${sql.table(lists[list].table)}`.execute(db)
      for (const { id } of rows) model.known.delete(id)
      return undefined
    },
  },
  {
    name: 'rows put back with their numbers',
    begin: async ({ db }) => {
      const kept = new Map<List, string>()
      for (const list of listNames) {
        const { rows } = await sql<{ json: string }>`
          select coalesce(json_agg(x)::text, '[]') as json from ${sql.table(lists[list].table)} x`.execute(
          db,
        )
        kept.set(list, String(rows[0]?.json))
      }
      return kept
    },
    end: async ({ db }, kept) => {
      for (const [list, json] of kept as Map<List, string>) {
        const table = sql.table(lists[list].table)
        const columns = await writableColumns(db, list)
        await sql`delete from ${table}`.execute(db)
        await sql`insert into ${table} (${columns}) select ${columns}
          from json_populate_recordset(null::${table}, ${json}::json)`.execute(db)
      }
      return undefined
    },
  },
  {
    name: 'SQL writes change numbers',
    end: async ({ db }, _, model) => {
      const { connection } = model.random.oneOf(model.callers)
      for (const list of listNames) {
        const number = sql.raw(
          model.random.oneOf(['0', '1', '-1', 'change_number - 1', 'change_number << 2']),
        )
        await sql`update ${sql.table(lists[list].table)} set amount = amount + 1, change_number = ${number}
          where connection_id = ${connection.id} and hashint8(change_number) % 2 = 0`.execute(db)
      }
      return undefined
    },
  },
]

async function writableColumns(db: Kysely<Tables>, list: List) {
  const { rows } = await sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = ${lists[list].table}::regclass and attnum > 0 and attgenerated = ''
      and not attisdropped`.execute(db)
  return sql.join(rows.map(({ name }) => sql.id(name)))
}

let copies = 0

/** Copies a database, as a physical backup does. Its sessions are closed. */
async function copyDatabase(t: Test, url: string): Promise<string> {
  copies += 1
  const [server, name] = [databaseUrl(url, 'postgres'), new URL(url).pathname.slice(1)]
  const copy = `${name}_${copies}`
  await onServer(server, `alter database ${name} allow_connections false`)
  await onServer(
    server,
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = '${name}' and pid <> pg_backend_pid()`,
  )
  await cloneDatabase(server, name, copy)
  await onServer(server, `alter database ${name} allow_connections true`)
  t.teardown(() => dropDatabase(server, copy))
  return databaseUrl(url, copy)
}

/** Events that copy the database on the same server. */
export function copyEvents(t: Test): Event[] {
  let backup: { url: string; known: Known } | undefined
  const moveTo = async ({ service }: Site, url: string) => {
    await service.close()
    return openSite(t, url)
  }
  return [
    {
      name: 'backup restored',
      loses: true,
      begin: ({ url }) => copyDatabase(t, url),
      end: (site, url) => moveTo(site, String(url)),
    },
    {
      name: 'backup restored, and kept for another restore',
      loses: true,
      begin: async ({ url }) => copyDatabase(t, url),
      end: async (site, url, { known }) => {
        backup = {
          url: String(url),
          known: new Map([...known].map(([id, versions]) => [id, new Set(versions)])),
        }
        return moveTo(site, await copyDatabase(t, String(url)))
      },
    },
    {
      name: 'the same backup restored again',
      end: async (site, _, model) => {
        if (backup === undefined) return undefined
        model.known.clear()
        for (const [id, versions] of backup.known) model.known.set(id, new Set(versions))
        return moveTo(site, await copyDatabase(t, backup.url))
      },
    },
    {
      name: 'planned: moved with all changes',
      end: async (site) => moveTo(site, await copyDatabase(t, site.url)),
    },
  ]
}

/** Runs the events, and reports the figures. */
export async function changeHistory(t: Test, model: Model, events: Event[], rounds: number) {
  for (const event of events) await model.run(event, rounds)
  const line = (...cells: unknown[]) => t.comment(`| ${cells.join(' | ')} |`)
  line('Change of history', 'number', 'cursors', 'expired', 'wrong')
  for (const [name, { events, cursors, expired }] of model.figures) {
    const wrong = model.wrong.filter((each) => each.startsWith(`${name}: `))
    line(name, events, cursors, expired, wrong.length)
    if (name.startsWith('planned')) t.equal(expired, 0, name)
  }
  t.comment(`${model.polls} polls, ${model.comparisons} comparisons, ${model.wrong.length} wrong`)
  t.same(model.wrong, [])
}
