import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { portfolioLine } from '../support/importing.ts'
import { openAsOwner } from '../support/logins.ts'
import { addApp, addConnection } from '../support/rows.ts'
import {
  type DebianPostgres,
  firstValue,
  migrate,
  startDebianPostgres,
  startStandby,
} from '../support/servers/debian-postgres.ts'
import { until } from '../support/until.ts'

/** The command has a low priority: other tests may keep the machine busy. */
const PATIENCE_MS = 180_000

const MAIN = join(import.meta.dirname, '../../src/operator/main.ts')

t.test('old primary alive, new one restarts: refresh writes to the new one alone', async (t) => {
  const { one, two, lines } = await startRefresh(t)
  await lines.results(30)
  await one.stop()
  await firstValue(two.url, 'select pg_promote()')
  await lines.results(30)
  await one.start()
  await two.stop()
  // In this time a client that takes any primary finds the old one.
  await sleep(3_000)
  await two.start()
  await lines.results(30)
  const { sent, exit, messages } = await lines.end()
  t.equal(exit, 0, messages)
  t.equal(Number(await firstValue(two.url, COUNT)), sent, 'each line with a result is there')
})

t.test('standby promoted while the old primary lives: refresh follows it', async (t) => {
  const { one, two, lines } = await startRefresh(t)
  await lines.results(30)
  await firstValue(two.url, 'select pg_promote()')
  await until(
    'refresh has moved',
    async () => lines.messages().includes('was promoted'),
    PATIENCE_MS,
  )
  // The last commit that was sent to the old one may end after the message.
  await until(
    'the sessions on the old one have ended',
    async () => (await firstValue(one.url, SESSIONS)) === '0',
    PATIENCE_MS,
  )
  const before = Number(await firstValue(one.url, COUNT))
  await lines.results(30)
  const { exit, messages } = await lines.end()
  t.equal(exit, 0, messages)
  t.equal(Number(await firstValue(one.url, COUNT)), before, 'nothing more on the old one')
  t.ok(Number(await firstValue(two.url, COUNT)) >= 60)
})

const COUNT = 'select count(*) from portfolio_transaction'
const SESSIONS = `select count(*) from pg_stat_activity
  where application_name = 'investment-data-operator'`

/** Two servers, the second a standby of the first, and a `refresh` on both that gets a line every 20 ms. */
async function startRefresh(t: Test) {
  const one = await startDebianPostgres(t)
  await migrate(one.url)
  const db = openAsOwner(t, one.url)
  const { id } = await addConnection(db, await addApp(db))
  const two = await startStandby(t, one)
  await until(
    'the standby follows',
    async () => (await firstValue(one.url, 'select count(*) from pg_stat_replication')) === '1',
  )
  return { one, two, lines: sendLines(t, [one, two], id) }
}

function sendLines(t: Test, servers: [DebianPostgres, DebianPostgres], id: string) {
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join()
  const DATABASE_URL = servers[0].url.replace(/(?<=@)[^/]+/, hosts)
  const args = ['--disable-warning=ExperimentalWarning', MAIN, 'refresh', '--jobs', '1']
  const child = spawn(process.execPath, args, { env: { ...process.env, DATABASE_URL } })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  let messages = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    messages += text
  })
  let results = 0
  createInterface(child.stdout).on('line', (line) => {
    t.ok('portfolioTransactions' in JSON.parse(line), line)
    results += 1
  })
  let sent = 0
  const timer = setInterval(() => {
    if (sent - results > 50) return
    child.stdin.write(`{"connection":"${id}","portfolioTransactions":[${portfolioLine(sent)}]}\n`)
    sent += 1
  }, 20)
  t.teardown(() => clearInterval(timer))
  return {
    messages: () => messages,
    results: async (more: number) => {
      const goal = results + more
      await until(`${more} more results`, async () => results >= goal, PATIENCE_MS)
    },
    end: async () => {
      clearInterval(timer)
      child.stdin.end()
      const [exit] = await exited
      t.equal(results, sent, 'a result for each line')
      return { sent, exit, messages }
    },
  }
}
