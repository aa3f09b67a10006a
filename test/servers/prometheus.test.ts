import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { dashboardQueries, read, ruleQueries } from '../support/alert-queries.ts'
import { send } from '../support/golden-responses.ts'
import { metricsUrl } from '../support/metrics.ts'
import { startProgram } from '../support/processes/program.ts'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const folder = path.resolve(import.meta.dirname, '../../deploy/observability')
const promtool = (...args: string[]) =>
  promisify(execFile)('promtool', args, { cwd: folder, timeout: 60_000 })

t.test(
  'promtool: the configuration and the rules are valid, and the alerts pass their tests',
  async (t) => {
    await t.resolves(promtool('check', 'config', 'prometheus.yml'))
    await t.resolves(promtool('check', 'rules', '--lint=all', '--lint-fatal', 'alerts.yml'))
    await t.resolves(promtool('test', 'rules', 'alerts.test.yml'))
    // A range of a rule needs four samples. The shortest range has a minute.
    const { global } = parse(read('deploy/observability/prometheus.yml'))
    t.same(global, { scrape_interval: '15s', evaluation_interval: '15s' })
  },
)

t.test('Prometheus: it scrapes the service, and each rule and panel query works', async (t) => {
  const service = await startService(t, { environment: { METRICS_PORT: '0' } })
  const { token, connection } = await addCaller(service.db)
  await service.get(connection.orders, { token })
  const ask = await startPrometheus(t, new URL(metricsUrl(service)).host)

  const up = async () => (await ask('/api/v1/query?query=up')).data.result[0]?.value[1]
  await until('Prometheus has scraped the service', async () => (await up()) === '1')
  for (const query of [...dashboardQueries(), ...ruleQueries()]) {
    const { status, error } = await ask(`/api/v1/query?query=${encodeURIComponent(query)}`)
    t.equal(status, 'success', error ?? query)
  }
  const rules = async (): Promise<Rule[]> => {
    const { groups } = (await ask('/api/v1/rules')).data
    return groups.flatMap((group: { rules: Rule[] }) => group.rules)
  }
  // Before its first scrape, Prometheus assumes that the service is down.
  const isPending = ({ health, state }: Rule) => health === 'unknown' || state === 'pending'
  await until('no rule is pending', async () => !(await rules()).some(isPending))
  const found = await rules()
  t.equal(found.length, ruleQueries().length)
  t.ok(found.every(({ health, state }) => health === 'ok' && state === 'inactive'))
})

interface Rule {
  health: string
  state: string
}

/** Starts Prometheus with the rules of the project and the service as its only target. */
async function startPrometheus(t: Test, target: string) {
  const data = await mkdtemp(path.join(tmpdir(), 'prometheus-'))
  t.teardown(() => rm(data, { recursive: true, force: true }))
  const jobs = read('deploy/observability/prometheus.yml')
    .replace('[alerts.yml]', `['${folder}/alerts.yml']`)
    .replaceAll('15s', '1s')
    .replace(/dns_sd_configs:.*/s, `static_configs: [{ targets: ['${target}'] }]\n`)
  await writeFile(`${data}/prometheus.yml`, jobs)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  await startProgram(t, {
    command: 'prometheus',
    package: 'prometheus',
    args: [
      `--config.file=${data}/prometheus.yml`,
      `--storage.tsdb.path=${data}/tsdb`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
  })
  const isReady = () =>
    send(url, { path: '/-/ready' }).then(
      ({ ok }) => ok,
      () => false,
    )
  await until('Prometheus is ready', isReady)
  // biome-ignore lint/suspicious/noExplicitAny: the tests read parts of any response.
  return async (path: string): Promise<any> => (await send(url, { path })).json()
}
