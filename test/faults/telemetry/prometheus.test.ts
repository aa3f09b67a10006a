import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { metricsUrl } from '../../support/metrics.ts'
import { addCaller } from '../../support/rows.ts'
import { startService } from '../../support/service.ts'
import { dashboardQueries, read, ruleQueries } from '../../telemetry/queries.ts'

const folder = path.resolve(import.meta.dirname, '../../../observability')
const promtool = (...args: string[]) => promisify(execFile)('promtool', args, { cwd: folder })

t.test(
  'promtool accepts the configuration and the rules, and the alerts fire as tried',
  async (t) => {
    await t.resolves(promtool('check', 'config', 'prometheus.yml'))
    await t.resolves(promtool('check', 'rules', '--lint=all', '--lint-fatal', 'alerts.yml'))
    await t.resolves(promtool('test', 'rules', 'alerts.test.yml'))
  },
)

t.test('Prometheus scrapes the service, evaluates each rule and answers each panel', async (t) => {
  const service = await startService(t, { environment: { METRICS_PORT: '0' } })
  const { token, connection } = await addCaller(service.db)
  await service.get(connection.orders, { token })
  const ask = await startPrometheus(t, new URL(metricsUrl(service)).host)

  const up = async () => (await ask('/api/v1/query?query=up')).data.result[0]?.value[1]
  while ((await up()) !== '1') await sleep(100)
  for (const query of [...dashboardQueries(), ...ruleQueries()]) {
    const { status, error } = await ask(`/api/v1/query?query=${encodeURIComponent(query)}`)
    t.equal(status, 'success', error ?? query)
  }
  const rules = async (): Promise<Rule[]> => {
    const { groups } = (await ask('/api/v1/rules')).data
    return groups.flatMap((group: { rules: Rule[] }) => group.rules)
  }
  // Until its first look at the instance, Prometheus takes the service for one that is gone.
  const settling = ({ health, state }: Rule) => health === 'unknown' || state === 'pending'
  while ((await rules()).some(settling)) await sleep(100)
  const found = await rules()
  t.equal(found.length, ruleQueries().length)
  t.ok(found.every(({ health, state }) => health === 'ok' && state === 'inactive'))
})

interface Rule {
  health: string
  state: string
}

/** A Prometheus of Debian's package with our rules, and the service in the place of the instances. */
async function startPrometheus(t: Test, target: string) {
  const data = await mkdtemp(path.join(tmpdir(), 'prometheus-'))
  const jobs = read('observability/prometheus.yml')
    .replace('[alerts.yml]', `['${folder}/alerts.yml']`)
    .replaceAll('15s', '1s')
    .replace(/dns_sd_configs:.*/s, `static_configs: [{ targets: ['${target}'] }]\n`)
  await writeFile(`${data}/prometheus.yml`, jobs)
  const port = await freePort()
  const prometheus = spawn(
    'prometheus',
    [
      `--config.file=${data}/prometheus.yml`,
      `--storage.tsdb.path=${data}/tsdb`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  )
  await once(prometheus, 'spawn')
  t.teardown(async () => {
    prometheus.kill('SIGKILL')
    if (prometheus.exitCode === null) await once(prometheus, 'exit')
    await rm(data, { recursive: true, force: true })
  })
  const ask = async (address: string) => (await fetch(`http://127.0.0.1:${port}${address}`)).json()
  const ready = () =>
    fetch(`http://127.0.0.1:${port}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await ready())) await sleep(100)
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came.
  return ask as (address: string) => Promise<any>
}
