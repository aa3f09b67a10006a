import { randomInt } from 'node:crypto'
import t from 'tap'
import { fc, runs } from '../support/random.ts'
import { check } from './check.ts'
import { found } from './found.ts'
import { schedules } from './schedule.ts'
import { simulate } from './simulate.ts'

/** The pools of src/postgres and the limits of src/limits in a simulated world: time, network and servers. */

const SEED = 60

t.test('one schedule twice: the same events', async (t) => {
  for (const schedule of fc.sample(schedules, { seed: SEED, numRuns: 3 })) {
    const [one, other] = [await simulate(schedule, true), await simulate(schedule, true)]
    t.ok(one.reads > 0)
    t.same(one.journal.lines, other.journal.lines)
    t.equal(one.journal.digest, other.journal.digest)
  }
})

t.test('schedules of a fixed seed: all invariants hold', async (t) => {
  const { failure } = await check(SEED, runs(200))
  t.equal(failure, undefined)
})

const newSeed = randomInt(2 ** 31)
t.test(`schedules of a new seed, ${newSeed}: all invariants hold`, async (t) => {
  const { failure } = await check(newSeed, runs(100))
  t.equal(failure, undefined)
})

for (const { name, schedule } of found)
  t.test(`${name}: all invariants hold`, async (t) => {
    t.same((await simulate(schedule)).violations, [])
  })
