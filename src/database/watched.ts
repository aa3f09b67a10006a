import type { Database } from './database.ts'

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
