import type { CopyChanges, CopyName, CopyStore, ListName } from './copy.ts'
import { CopyError } from './errors.ts'

type Value = string | number | null

/** `DatabaseSync` of `node:sqlite`, or a database with the same functions. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): { run(...values: Value[]): unknown; get(...values: Value[]): unknown }
}

/** The Python client has the same tables, so both can continue a copy. */
const SCHEMA = `
  create table if not exists investment_copy (
    id integer primary key,
    connection text not null,
    list text not null,
    copy text not null,
    cursor text not null,
    unique (connection, list, copy)
  );
  create table if not exists investment_row (
    copy_id integer not null references investment_copy (id),
    id text not null,
    row text not null,
    primary key (copy_id, id)
  ) without rowid;
  create view if not exists portfolio_transactions as
    select connection, r.id, row from investment_copy c join investment_row r on copy_id = c.id
    where list = 'portfolio_transactions' and copy = 'current';
  create view if not exists account_transactions as
    select connection, r.id, row from investment_copy c join investment_row r on copy_id = c.id
    where list = 'account_transactions' and copy = 'current';
`

/**
 * Keeps copies in SQLite. The views `portfolio_transactions` and `account_transactions` have the complete
 * copies: `connection`, `id`, and `row` as JSON with decimals as text.
 */
export class SqliteStore implements CopyStore {
  readonly #db: SqliteDatabase
  readonly #connection: string

  /** @param connection your own name of the connection, not its token; one database may have many */
  constructor(db: SqliteDatabase, connection: string) {
    if (typeof connection !== 'string') throw new TypeError('connection must be a text')
    this.#db = db
    this.#connection = connection
    db.exec(SCHEMA)
  }

  cursor(list: ListName, copy: CopyName): string | null {
    return this.#find(list, copy)?.cursor ?? null
  }

  apply({ list, copy, since, cursor, upserts, removed }: CopyChanges): void {
    this.#transaction(() => {
      this.#expect(list, copy, since)
      const save = this.#db.prepare(
        'insert into investment_copy (connection, list, copy, cursor) values (?, ?, ?, ?) ' +
          'on conflict (connection, list, copy) do update set cursor = excluded.cursor',
      )
      save.run(this.#connection, list, copy, cursor)
      const id = this.#find(list, copy)?.id ?? null
      const write = this.#db.prepare('insert or replace into investment_row values (?, ?, ?)')
      for (const upsert of upserts) write.run(id, upsert.id, JSON.stringify(upsert.row))
      const remove = this.#db.prepare('delete from investment_row where copy_id = ? and id = ?')
      for (const removal of removed) remove.run(id, removal)
    })
  }

  count(list: ListName, copy: CopyName): number {
    const sql = 'select count(*) as count from investment_row where copy_id = ?'
    const { count } = this.#db.prepare(sql).get(this.#find(list, copy)?.id ?? null) as {
      count: number
    }
    return count
  }

  swap(list: ListName, cursor: string): void {
    this.#transaction(() => {
      this.#expect(list, 'next', cursor)
      this.#delete(list, 'current')
      const sql =
        'update investment_copy set copy = ? where connection = ? and list = ? and copy = ?'
      this.#db.prepare(sql).run('current', this.#connection, list, 'next')
    })
  }

  discard(list: ListName): void {
    this.#transaction(() => this.#delete(list, 'next'))
  }

  #find(list: ListName, copy: CopyName): { id: number; cursor: string } | undefined {
    const sql =
      'select id, cursor from investment_copy where connection = ? and list = ? and copy = ?'
    const found = this.#db.prepare(sql).get(this.#connection, list, copy)
    return found as { id: number; cursor: string } | undefined
  }

  #expect(list: ListName, copy: CopyName, cursor: string | null): void {
    if (this.cursor(list, copy) !== cursor)
      throw new CopyError('conflict', 'Another process has changed the copy: synchronize again')
  }

  #delete(list: ListName, copy: CopyName): void {
    const id = this.#find(list, copy)?.id ?? null
    this.#db.prepare('delete from investment_row where copy_id = ?').run(id)
    this.#db.prepare('delete from investment_copy where id = ?').run(id)
  }

  #transaction(work: () => void): void {
    this.#db.exec('begin immediate')
    try {
      work()
      this.#db.exec('commit')
    } catch (error) {
      try {
        this.#db.exec('rollback')
      } catch {
        // SQLite has already rolled back, for example because the disk is full.
      }
      throw error
    }
  }
}
