import type { Reader } from './reader.ts'
import type { Replica } from './replica.ts'
import type { Parameter, Statement } from './statements.ts'
import type { RawRows } from './wire/query.ts'

/** What a read needs of the replica in use. */
export type UsedReplica = Pick<Replica, 'name' | 'read' | 'compared'>

interface ReplicaRead<Found> {
  statement: Statement
  values: Parameter[]
  reader: Reader
  /** Reads what the primary has now. Its errors end the request: a revoked token is rejected at once. */
  readNewest(): Promise<Found>
  /** Returns what the rows of a replica have found, if it is what the primary has. A lagging replica may throw. */
  accept(rows: RawRows, newest: Found): Found | undefined
}

/**
 * Reads from a replica, and at the same time what the primary has. A lagging replica only costs a second read.
 * @returns undefined if the rows must come from the primary
 */
export async function readReplica<Found>(
  db: { replica(): UsedReplica | undefined },
  read: ReplicaRead<Found>,
): Promise<{ found: Found; rows: RawRows } | undefined> {
  const { statement, values, reader } = read
  const replica = db.replica()
  if (replica === undefined) return undefined
  const reading = replica.read(statement, values, reader)
  // Prevents an unhandled rejection if the primary rejects the request first.
  reading.catch(() => {})
  const newest = await read.readNewest()
  const rows = await reading
  if (rows === undefined) return undefined
  const found = accepted(replica, () => read.accept(rows, newest))
  if (found === undefined) {
    rows.discard()
    return undefined
  }
  reader.recorder.read(statement.title, replica.name)
  return { found, rows }
}

/** Reports to the replica whether its rows are accepted. */
function accepted<Found>(replica: UsedReplica, accept: () => Found | undefined): Found | undefined {
  try {
    const found = accept()
    replica.compared(found !== undefined)
    return found
  } catch {
    // A lagging replica may reject a request that the primary accepts.
    replica.compared(false)
    return undefined
  }
}
