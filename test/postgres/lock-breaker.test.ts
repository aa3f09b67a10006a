import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { asUnavailable } from '../../src/postgres/failures.ts'
import { LockBreaker } from '../../src/postgres/lock-breaker.ts'
import { Read } from '../../src/postgres/read.ts'
import { createDatabase, openClient, readerOf } from '../support/database.ts'

/** Of a locked table, one read at a time waits for the lock. The errors are those of a real PostgreSQL. */

const { url } = await createDatabase(t)

const readOf = (name: string) => new Read({ name, title: name, text: '' }, [], 1_000, readerOf())

/** Returns the error of a statement that waits for a lock in vain, or of one that fails. */
async function errorOf(t: Test, text: string): Promise<Error> {
  const holder = await openClient(t, url)
  await holder.query('begin; lock table app in access exclusive mode')
  const client = await openClient(t, url, '-c lock_timeout=10')
  const error = await client.query(text).then(
    () => undefined,
    (error: Error) => error,
  )
  await holder.query('rollback')
  if (error === undefined) throw new Error('the statement did not fail')
  return error
}

t.test('locked table: one read may try, and the others are rejected with the error', async (t) => {
  const breaker = new LockBreaker(10_000)
  const locked = await errorOf(t, 'select from app')
  breaker.failed(readOf('page'), locked)
  const [first, second] = [readOf('page'), readOf('page')]
  t.ok(breaker.isLocked(first))
  t.notOk(breaker.isLocked(readOf('orders')), 'another statement runs')
  t.ok(breaker.mayTry(first))
  t.notOk(breaker.mayTry(second))
  t.match(breaker.rejection(second), { name: 'Unavailable', reason: 'database', cause: locked })
})

t.test('end of the trial: the next read may try at once', async (t) => {
  const breaker = new LockBreaker(10_000)
  const locked = await errorOf(t, 'select from app')
  breaker.failed(readOf('page'), locked)
  const trial = readOf('page')
  t.ok(breaker.mayTry(trial))
  breaker.failed(readOf('page'), locked)
  t.notOk(breaker.mayTry(readOf('page')), 'a read that was sent before the trial ends no trial')
  breaker.failed(trial, locked)
  t.ok(breaker.mayTry(readOf('page')))
})

t.test('success: the reads of the statement run again', async (t) => {
  const breaker = new LockBreaker(10_000)
  const locked = await errorOf(t, 'select from app')
  for (const name of ['page', 'orders']) breaker.failed(readOf(name), locked)
  const trial = readOf('page')
  t.ok(breaker.mayTry(trial))
  breaker.succeeded(trial)
  t.notOk(breaker.isLocked(readOf('page')))
  t.ok(breaker.isLocked(readOf('orders')), 'until one of its own reads succeeds')
  t.ok(breaker.mayTry(readOf('orders')))
})

t.test('trial without an end: after its time, another read may try', async (t) => {
  const breaker = new LockBreaker(20)
  breaker.failed(readOf('page'), await errorOf(t, 'select from app'))
  t.ok(breaker.mayTry(readOf('page')))
  await sleep(30)
  t.ok(breaker.mayTry(readOf('page')))
})

t.test('other errors: the reads of the statement run', async (t) => {
  const breaker = new LockBreaker(10_000)
  const failed = await errorOf(t, 'select 1/0')
  breaker.failed(readOf('page'), failed)
  t.notOk(breaker.isLocked(readOf('page')))
  t.equal(asUnavailable(failed), failed)
})
