import { CopyError } from './errors.ts'

/** The transaction in which a store calls onChanges. */
export interface StoreTransaction {
  isOpen: boolean
}

/** A transaction of a database whose statements need its client. */
interface ClientTransaction {
  database: object
  client: unknown
  transaction: StoreTransaction
  outer: ClientTransaction | undefined
}

/** `AsyncLocalStorage` of Node.js, as far as this file uses it. */
interface Storage {
  run<T>(value: ClientTransaction, work: () => T): T
  getStore(): ClientTransaction | undefined
}

/**
 * Knows whether a statement comes from onChanges. It is of Node.js 20.16 or later, and of other servers with its functions. An
 * import of it would not work in a bundle for browsers.
 */
const storage = storageOf()

function storageOf(): Storage | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): unknown } }
  const hooks = process?.getBuiltinModule?.('node:async_hooks')
  if (hooks === undefined || hooks === null) return undefined
  const { AsyncLocalStorage } = hooks as { AsyncLocalStorage: new () => Storage }
  return new AsyncLocalStorage()
}

/** Runs onChanges. Other stores of the database then use the client of the transaction. */
export function insideTransaction<T>(
  database: object,
  client: unknown,
  transaction: StoreTransaction,
  work: () => T,
): T {
  if (storage === undefined) return work()
  return storage.run({ database, client, transaction, outer: storage.getStore() }, work)
}

/** Returns the open transaction of a database in which onChanges runs, if the caller is inside onChanges. */
export function transactionOf(database: object): ClientTransaction | undefined {
  for (let each = storage?.getStore(); each !== undefined; each = each.outer)
    if (each.database === database && each.transaction.isOpen) return each
  return undefined
}

/** @throws CopyError `transaction_ended` after the transaction */
export function expectOpen({ isOpen }: StoreTransaction): void {
  if (isOpen) return
  const message = 'The store of onChanges has ended with its transaction: use it inside onChanges'
  throw new CopyError('transaction_ended', message)
}
