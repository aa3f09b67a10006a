import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { until } from '../../support/until.ts'
import { learnDemo, seedDemo } from '../support/demo-answers.ts'
import { allAnswered } from '../support/load.ts'
import { startInstance } from '../support/processes/instances.ts'
import { askOnce, keepAskingThrough } from '../support/proxied-load.ts'
import { type StartProxy, startHaproxy, startNginx } from '../support/servers/proxies.ts'

const { url: databaseUrl } = await createDatabase(t)
await seedDemo(databaseUrl)
const known = await learnDemo(t, databaseUrl)
const [question = { path: '/' }] = known
const login = await loginOfService(t, openAsOwner(t, databaseUrl), databaseUrl)

const proxies: Record<string, StartProxy> = { HAProxy: startHaproxy, nginx: startNginx }
for (const [name, startProxy] of Object.entries(proxies)) {
  t.test(`Behind ${name}, two instances are restarted and no request is lost`, async (t) => {
    const start = { environment: { DATABASE_URL: login } }
    const instances = [await startInstance(t, start), await startInstance(t, start)] as const
    const proxy = await startProxy(t, [instances[0].port, instances[1].port])
    const stop = keepAskingThrough(t, proxy, known)
    for (const instance of instances) {
      await sleep(500)
      await instance.restart()
    }
    // As long as it may take until the last one is asked again.
    await sleep(2_000)
    allAnswered(t, await stop())
    t.notOk(/idq_demo|DEMO[A-Z]+1/.test(proxy.said()), 'no token is in its log')
  })
}

t.test('Behind HAProxy, no instance is ready: the one error body, and no token', async (t) => {
  const instance = await startInstance(t, { environment: { DATABASE_URL: login } })
  const proxy = await startHaproxy(t, [instance.port, instance.port])
  await instance.end()
  await until('it has noticed', async () => (await askOnce(proxy, question)).status === 503)
  const { headers, body } = await askOnce(proxy, question)
  const requestId = String(headers['x-request-id'])
  t.match(JSON.parse(body), { status: 503, code: 'service_unavailable', requestId })
  t.match(headers, { 'retry-after': '1', 'content-type': 'application/json' })
  t.match(proxy.said(), ' 503 ', 'its log tells of it')
  t.notOk(proxy.said().includes('/connections/'))
})
