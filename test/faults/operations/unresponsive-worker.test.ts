import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { until } from '../../support/until.ts'
import { openTestDatabase } from '../support/database.ts'
import { childrenOf, startServiceProcess } from '../support/processes/service-process.ts'

const { login } = await openTestDatabase(t)
const service = await startServiceProcess(t, { DATABASE_URL: login, WORKERS: '2' })
const workers = () => childrenOf(service.process.pid)

t.test('suspended instance: its workers are the same afterwards', async (t) => {
  const before = await workers()
  t.equal(before.length, 2)
  const all = [Number(service.process.pid), ...before]
  for (const pid of all) process.kill(pid, 'SIGSTOP')
  // Longer than the time after which a worker is killed.
  await sleep(40_000)
  for (const pid of all) process.kill(pid, 'SIGCONT')
  // A ping and its response.
  await sleep(7_000)
  t.same(await workers(), before)
})

t.test('stopped worker: it is killed and replaced', async (t) => {
  const [stopped, other] = (await workers()) as [number, number]
  process.kill(stopped, 'SIGSTOP')
  const isReplaced = async () => {
    const found = await workers()
    return found.length === 2 && !found.includes(stopped)
  }
  await until('the worker is replaced', isReplaced, 120_000)
  t.ok((await workers()).includes(other), 'the other worker is the same')
  t.match(service.output(), `"worker":${stopped},"msg":"worker does not respond"`)
  t.equal(await service.ready(), 200)
})
