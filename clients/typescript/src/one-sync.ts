import type { CallEnd } from './call-end.ts'
import type { CopyStore, SyncedCopies } from './copy.ts'
import { CopyError } from './errors.ts'
import { transactionOf } from './transaction.ts'

/** What a call of syncTransactions() asks for. Equal calls share one synchronization. */
export interface SyncCall {
  /** The client, and the token of the connection. */
  http: object
  token: string
  onChanges: unknown
  signal: AbortSignal | undefined
}

interface RunningSync {
  call: SyncCall
  result: Promise<SyncedCopies>
}

/** The last synchronization of each copy that has not ended: by database, then by name. */
const running = new Map<object, Map<string, RunningSync>>()

/**
 * Runs one synchronization of a copy at a time in this process. An equal call shares the result of the one that
 * runs. Another call waits for it, so that both do not write the same copy.
 * @throws CopyError `transaction_open` inside onChanges: a call that waits for itself would never end
 */
export function oneSync<Client, Bound>(
  store: CopyStore<Client, Bound>,
  call: SyncCall,
  end: CallEnd,
  run: () => Promise<SyncedCopies>,
): Promise<SyncedCopies> {
  const [database, name] = store.key ?? [store, '']
  if (transactionOf(database) !== undefined)
    throw new CopyError('transaction_open', 'onChanges cannot synchronize its own database')
  const ofDatabase = running.get(database) ?? new Map<string, RunningSync>()
  const last = ofDatabase.get(name)
  if (last !== undefined && isEqual(last.call, call)) return last.result
  const sync = { call, result: last === undefined ? run() : after(last.result, end, run) }
  ofDatabase.set(name, sync)
  running.set(database, ofDatabase)
  const forget = () => {
    if (ofDatabase.get(name) === sync) ofDatabase.delete(name)
    if (ofDatabase.size === 0) running.delete(database)
  }
  sync.result.then(forget, forget)
  return sync.result
}

/** Runs a call after another one, unless its time is over before. */
async function after(
  last: Promise<unknown>,
  end: CallEnd,
  run: () => Promise<SyncedCopies>,
): Promise<SyncedCopies> {
  const ignore = () => {}
  await end.until(last.then(ignore, ignore))
  return run()
}

/** A signal ends one call alone, so a call with a signal shares nothing. */
function isEqual(a: SyncCall, b: SyncCall): boolean {
  if (a.signal !== undefined || b.signal !== undefined) return false
  return a.http === b.http && a.token === b.token && a.onChanges === b.onChanges
}
