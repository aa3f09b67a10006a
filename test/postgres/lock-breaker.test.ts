import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { LockBreaker } from '../../src/postgres/lock-breaker.ts'
import { Read } from '../../src/postgres/read.ts'
import { createDatabase, openClient, readerOf } from '../support/database.ts'

/** When a further read may wait for a lock. The simulation has the rest: see oneReadTries. */

const { url } = await createDatabase(t)

const readOf = (name: string) => new Read({ name, title: name, text: '' }, [], 1_000, readerOf())

/** Returns the error of a statement that waits for a lock in vain. */
async function lockError(t: Test): Promise<Error> {
  const holder = await openClient(t, url)
  await holder.query('begin; lock table app in access exclusive mode')
  const client = await openClient(t, url, '-c lock_timeout=10')
  const error = await client.query('select from app').then(
    () => undefined,
    (error: Error) => error,
  )
  await holder.query('rollback')
  if (error === undefined) throw new Error('the statement did not fail')
  return error
}

t.test('end of the trial: the next read may try at once', async (t) => {
  const breaker = new LockBreaker(10_000)
  const locked = await lockError(t)
  breaker.failed(readOf('page'), locked)
  const trial = readOf('page')
  t.ok(breaker.mayTry(trial))
  breaker.failed(readOf('page'), locked)
  t.notOk(breaker.mayTry(readOf('page')), 'a read that was sent before the trial ends no trial')
  breaker.failed(trial, locked)
  t.ok(breaker.mayTry(readOf('page')))
})

t.test('trial without an end: after its time, another read may try', async (t) => {
  const breaker = new LockBreaker(20)
  breaker.failed(readOf('page'), await lockError(t))
  t.ok(breaker.mayTry(readOf('page')))
  await sleep(30)
  t.ok(breaker.mayTry(readOf('page')))
})
