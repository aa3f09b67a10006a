import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { verifyRowCounts } from '../../src/operator/verify.ts'
import { portfolioLine, uuid } from '../support/importing.ts'
import { openAsOwner } from '../support/logins.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { addApp, addConnection, addToken, type TestConnection } from '../support/rows.ts'
import {
  firstValue,
  migrate,
  startDebianPostgres,
  startStandby,
} from '../support/servers/debian-postgres.ts'
import { until } from '../support/until.ts'

const MAIN = join(import.meta.dirname, '../../src/operator/main.ts')
const CONNECTIONS = 20
const LINES = 600

t.test('refresh, synchronous standby promoted: each result is kept, no row twice', async (t) => {
  const one = await startDebianPostgres(t)
  const login = await migrate(one.url)
  const first = openAsOwner(t, one.url)
  const appId = await addApp(first)
  const token = await addToken(first, appId)
  const connections = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => addConnection(first, appId)),
  )
  const two = await startStandby(t, one)
  await firstValue(one.url, `alter system set synchronous_standby_names = 'standby'`)
  await firstValue(one.url, 'select pg_reload_conf()')
  const isSynchronous = `select sync_state = 'sync' from pg_stat_replication`
  await until(
    'a standby is synchronous',
    async () => (await firstValue(one.url, isSynchronous)) === true,
  )

  const hosts = `127.0.0.1:${one.port},127.0.0.1:${two.port}`
  const onBoth = (url: string) => url.replace(/(?<=@)[^/]+/, hosts)
  const lines = Array.from({ length: LINES }, (_, index) => {
    const { id } = connections[index % CONNECTIONS] as TestConnection
    return `{"connection":"${id}","portfolioTransactions":[${portfolioLine(index)}]}\n`
  })
  const refresh = async (onResult: (count: number) => void) => {
    const args = ['--disable-warning=ExperimentalWarning', MAIN, 'refresh']
    const env = { ...process.env, DATABASE_URL: onBoth(one.url) }
    const child = spawn(process.execPath, args, { env })
    t.teardown(() => child.kill('SIGKILL'))
    child.stdin.end(lines.join(''))
    const [exit, messages] = [once(child, 'exit'), text(child.stderr)]
    const results: { portfolioTransactions?: { inserted: number }; errors?: object[] }[] = []
    for await (const line of createInterface(child.stdout)) onResult(results.push(JSON.parse(line)))
    t.same(await exit, [0, null])
    t.equal(results.length, LINES)
    t.same(
      results.flatMap(({ errors = [] }) => errors),
      [],
    )
    const inserted = results.map(
      ({ portfolioTransactions }) => portfolioTransactions?.inserted ?? 0,
    )
    return { messages: await messages, inserted: inserted.reduce((sum, one) => sum + one, 0) }
  }

  let promotion: Promise<unknown> | undefined
  const promote = async () => {
    await one.stop()
    await firstValue(two.url, 'select pg_promote()')
  }
  const { messages } = await refresh((count) => {
    if (count === LINES / 3) promotion = promote()
  })
  await promotion
  t.match(messages, /Trying again until it responds\./)

  const service = await startServiceProcess(t, { DATABASE_URL: onBoth(login) })
  const headers = { authorization: `Bearer ${token}` }
  for (const [index, { portfolio }] of connections.entries()) {
    const response = await fetch(`${service.url}${portfolio}?limit=1000`, { headers })
    const { items } = (await response.json()) as { items: { transactionId: string }[] }
    const expected = Array.from({ length: LINES / CONNECTIONS }, (_, n) =>
      uuid(index + n * CONNECTIONS),
    )
    t.same(items.map(({ transactionId }) => transactionId).sort(), expected.sort())
  }
  const found = await verifyRowCounts(openAsOwner(t, two.url))
  t.same([found.differences, found.numbers], [[], []])
  t.match(await refresh(() => {}), { inserted: 0 }, 'the same lines again change nothing')
})
