import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import t from 'tap'
import { readConfig, settings } from '../../src/config.ts'
import { MAX_SOCKETS } from '../../src/http/sockets.ts'
import { poolSizes } from '../../src/postgres/server.ts'
import { shutdownMs } from '../../src/shutdown.ts'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import { recordDemo } from '../support/golden-responses.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import { startInstance } from '../support/processes/instances.ts'
import { openSeededDatabase } from '../support/seeded-service.ts'
import { startDns } from '../support/servers/dns.ts'
import { startComposeHaproxy } from '../support/servers/proxies.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const scale = await readFile('docs/scale.md', 'utf8')
const deploy = await readFile('docs/deploy.md', 'utf8')
const proxy = await readFile('docs/proxy.md', 'utf8')
const unit = await readFile('deploy/systemd/investment-data-query@.service', 'utf8')

/** Values of a directive of the unit, for an instance. */
function values(directive: string, instance = '3001'): string[] {
  const lines = unit.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))
  return [...lines].map(([, value = '']) => value.replaceAll('%i', instance))
}

t.test('systemd: systemd-analyze accepts the unit as documented', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'unit-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const analyze = async (...args: string[]) => {
    const options = { env: { PATH: process.env.PATH, SYSTEMD_LOG_LEVEL: 'warning' } }
    const { stdout, stderr } = await promisify(execFile)('systemd-analyze', args, options)
    return stdout + stderr
  }
  const template = join(folder, 'investment-data-query@.service')
  const verify = async (text: string) => {
    await writeFile(template, text)
    return await analyze('verify', join(folder, 'investment-data-query@3001.service'))
  }
  const installed = fillIn(unit, { '/usr/local/bin/node': process.execPath })
  t.equal(await verify(installed), '')
  t.match(
    await verify(installed.replace('Restart=', 'Restarts=')),
    'Unknown key',
    'it finds errors',
  )
  await writeFile(template, unit)
  const report = await analyze('security', '--offline=true', '--json=short', template)
  const protections: { name: string; set: boolean; description: string }[] = JSON.parse(report)
  const set = protections.filter((protection) => protection.set)
  const capabilities = /^CapabilityBoundingSet=/
  t.same(
    protections.filter(({ name }) => capabilities.test(name)),
    set.filter(({ name }) => capabilities.test(name)),
    'no capability',
  )
  const names = ['User=/DynamicUser=', 'ProtectSystem=', 'NoNewPrivileges=', 'PrivateTmp=']
  for (const name of names)
    t.ok(
      set.some((protection) => protection.name === name),
      name,
    )
  t.ok(set.some(({ description }) => description === 'Service has no access to home directories'))
})

t.test('systemd: the service starts again for ever, and its secret is a file of root', (t) => {
  const unitPart = unit.slice(0, unit.indexOf('[Service]'))
  t.match(unitPart, /^StartLimitIntervalSec=0$/m, 'also after many starts with an outdated schema')
  t.ok(Number(values('RestartSec')) >= 1)
  t.match(unitPart, /^After=network-online\.target$/m)
  t.match(unitPart, /^Wants=network-online\.target$/m)
  t.same(values('LoadCredential'), ['database-url:/etc/investment-data-query.url'])
  t.ok(values('Environment').includes('DATABASE_URL_FILE=%d/database-url'))
  t.match(deploy, '/etc/investment-data-query.url', 'the page creates the file')
  t.end()
})

t.test(
  'systemd: systemd-analyze accepts the units of the jobs, which name only what the pages create',
  async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'units-'))
    t.teardown(() => rm(folder, { recursive: true }))
    for (const job of ['verify', 'prune', 'token expiring']) {
      const name = `investment-data-${job.replace(' ', '-')}`
      const text = await readFile(`deploy/systemd/${name}.service`, 'utf8')
      const timer = await readFile(`deploy/systemd/${name}.timer`, 'utf8')
      await writeFile(
        join(folder, `${name}.service`),
        fillIn(text, { '/usr/local/bin/node': process.execPath }),
      )
      await writeFile(join(folder, `${name}.timer`), timer)
      const options = { env: { PATH: process.env.PATH, SYSTEMD_LOG_LEVEL: 'warning' } }
      const files = [join(folder, `${name}.service`), join(folder, `${name}.timer`)]
      const { stdout, stderr } = await promisify(execFile)(
        'systemd-analyze',
        ['verify', ...files],
        options,
      )
      t.equal(stdout + stderr, '')
      t.match(text, `src/operator/main.ts ${job}`)
      t.notMatch(text, /^User=/m, 'no user that nobody creates')
      const paths = [...text.matchAll(/(?<==|:)\/(?:etc|opt)\/[\w.-]+/g)].map(([path]) => path)
      t.ok(paths.length >= 2)
      for (const path of paths) t.ok(deploy.includes(path), path)
    }
  },
)

t.test('systemd: the unit has valid settings, other ones for each instance', (t) => {
  const settingsOf = (instance: string) =>
    Object.fromEntries(
      values('Environment', instance)
        .join(' ')
        .split(' ')
        .filter((pair) => !pair.startsWith('DATABASE_URL_FILE='))
        .map((pair) => pair.split('=')),
    )
  for (const instance of ['3001', '3002']) {
    const { PORT, METRICS_PORT } = readConfig(settingsOf(instance))
    t.same(
      { PORT, METRICS_PORT },
      { PORT: Number(instance), METRICS_PORT: 10_000 + Number(instance) },
    )
  }
  for (const name of Object.keys(settingsOf('3001'))) t.ok(name in settings, name)
  t.same(values('ExecReload'), ['/bin/kill -HUP $MAINPID'], 'reads the files of secrets again')
  t.end()
})

t.test('systemd: the limits of the unit fit the settings', (t) => {
  const config = readConfig({})
  const { small, large } = poolSizes(config.DATABASE_POOL_SIZE)
  t.ok(Number(values('LimitNOFILE')) > MAX_SOCKETS + small + large + 1 + 100)
  t.ok(Number(values('TimeoutStopSec')) * 1_000 > shutdownMs(config))
  t.end()
})

/** Settings that are limits of one instance, and are divided on one machine. */
const SHARED = ['DATABASE_POOL_SIZE', 'ANSWER_MEMORY_MB', 'MAX_REQUESTS'] as const

t.test('The table of shares divides the defaults, and HAProxy sends fewer requests', (t) => {
  const [, table = ''] = /^\| Limit of each instance .*\n.*\n((?:\|.*\n)+)/m.exec(scale) ?? []
  const rows = new Map(
    [...table.matchAll(/^\| `(\w+)`.*?((?: \| \d+)+) \|$/gm)].map(([, name = '', cells = '']) => [
      name,
      [...cells.matchAll(/\d+/g)].map(Number),
    ]),
  )
  t.same([...rows.keys()], [...SHARED, 'maxconn'])
  const defaults = readConfig({})
  const numbers = [1, 2, 3, 4]
  /** Each instance has the connections for large reads. Only the other ones are divided. */
  const { large } = poolSizes(defaults.DATABASE_POOL_SIZE)
  const whole = { DATABASE_POOL_SIZE: large, ANSWER_MEMORY_MB: 0, MAX_REQUESTS: 0 }
  for (const name of SHARED) {
    const divided = defaults[name] - whole[name]
    t.same(
      rows.get(name),
      numbers.map((instances) => whole[name] + Math.ceil(divided / instances)),
      name,
    )
    for (const share of rows.get(name) ?? []) readConfig({ [name]: String(share) })
  }
  const [documented] = /(?<=default-server.* maxconn )\d+/.exec(proxy) ?? []
  t.equal(rows.get('maxconn')?.[0], Number(documented))
  for (const [index, maxconn] of (rows.get('maxconn') ?? []).entries())
    t.ok(maxconn < Number(rows.get('MAX_REQUESTS')?.[index]), `${maxconn}`)
  t.end()
})

t.test('deploy/haproxy/haproxy.cfg: the documented configuration, without TLS', async (t) => {
  const [documented = ''] = codeBlocks('Behind a proxy')
  const file = await readFile('deploy/haproxy/haproxy.cfg', 'utf8')
  const lines = (text: string) => text.split('\n').filter((line) => line && !line.startsWith('#'))
  const [own, shared] = [new Set(lines(file)), new Set(lines(documented))]
  const removed = [...shared].filter((line) => !own.has(line)).join('\n')
  const added = [...own].filter((line) => !shared.has(line)).map((line) => line.trim())
  t.match(
    removed.split('\n').map((line) => line.trim().split(' ')[0]),
    withLengths([
      // The image of HAProxy has a user of its own.
      ...['global', '#', 'user', 'group'],
      ...['bind', '#', '#', 'stick-table', 'tcp-request', 'tcp-request', 'http-request'],
      ...['http-response', 'server', 'server'],
    ]),
  )
  t.match(
    added,
    withLengths([
      'bind :8080',
      /^# /,
      /^server-template instance 10 service:3000 resolvers docker /,
      'resolvers docker',
      'nameserver docker 127.0.0.11:53',
      /^# /,
      'hold valid 1s',
    ]),
  )
})

t.test('200: HAProxy of Docker Compose finds instances that start and end', async (t) => {
  const { url: databaseUrl, login } = await openSeededDatabase(t)
  const golden = await recordDemo(t, databaseUrl)
  const [free, metrics, addresses] = [await freePort(), await freePort(), new Set<string>()]
  // As containers: each instance has an address, and all have the same port.
  const startOn = async (address: string) => {
    const environment = {
      DATABASE_URL: login,
      HOST: address,
      PORT: String(free),
      METRICS_HOST: address,
      METRICS_PORT: String(metrics),
    }
    const instance = await startInstance(t, { environment })
    addresses.add(address)
    return async () => {
      t.equal(await instance.end(), 0, 'exit code')
      addresses.delete(address)
    }
  }
  const endFirst = await startOn('127.0.0.1')
  const { url, log } = await startComposeHaproxy(t, free, metrics, await startDns(t, addresses))
  const stop = startGoldenLoad(t, { url, golden, clients: 4 })
  /** Waits until HAProxy sends requests to an instance, with the number of its place. */
  const untilUsed = (place: number) =>
    until(`instance ${place} is used`, () =>
      new RegExp(` 200 .* instance${place}(?: |$)`, 'm').test(log()),
    )
  await untilUsed(1)
  const endSecond = await startOn('127.0.0.2')
  await untilUsed(2)
  await endFirst()
  await startOn('127.0.0.3')
  await until('HAProxy finds the third instance', () => log().includes('127.0.0.3'))
  await sleep(2_000)
  await endSecond()
  await sleep(1_000)
  assertAllAnswered(t, await stop())
})
