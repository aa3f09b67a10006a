import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Test } from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { codeBlocks, fillIn } from '../documented-commands.ts'
import { send } from '../golden-responses.ts'
import { type Program, startProgram } from '../processes/program.ts'
import { healthPortOf } from '../processes/service-process.ts'
import { until } from '../until.ts'
import { makeCertificate } from './certificate.ts'

/** Proxy in front of two instances. */
export interface Proxy {
  url: string
  log(): string
}

/** Starts a proxy in front of the instances on these ports. */
export type StartProxy = (t: Test, ports: readonly [number, number]) => Promise<Proxy>

/** Starts HAProxy with the documented configuration. */
export const startHaproxy: StartProxy = (t, ports) => startTlsHaproxy(t, ports, 'http/1.1')

/**
 * Starts it with TLS.
 * @param protocols that it offers
 * @param changes of the configuration
 */
export async function startTlsHaproxy(
  t: Test,
  ports: readonly [number, number],
  protocols: string,
  changes: Record<string, string> = {},
): Promise<Proxy> {
  const { certificate, key } = await makeCertificate(t)
  const chain = await readFile(certificate, 'utf8')
  const file = join(await newFolder(t), 'site.pem')
  await writeFile(file, chain + (await readFile(key, 'utf8')))
  // Clients in this process trust this certificate only.
  const trusted = getCACertificates('default')
  setDefaultCACertificates([chain])
  t.teardown(() => setDefaultCACertificates(trusted))
  return await startDocumentedHaproxy(t, ports, ` ssl crt ${file} alpn ${protocols}`, changes)
}

/**
 * Starts the same HAProxy without TLS, whose handshakes would take most of the time of a flood.
 * @param changes of the configuration
 */
export const startPlainHaproxy = (
  t: Test,
  ports: readonly [number, number],
  changes: Record<string, string> = {},
): Promise<Proxy> => startDocumentedHaproxy(t, ports, '', changes)

async function startDocumentedHaproxy(
  t: Test,
  [one, two]: readonly [number, number],
  tls: string,
  changes: Record<string, string> = {},
) {
  const [configuration = ''] = codeBlocks('Behind a proxy')
  const port = await freePort()
  const filled = fillIn(configuration, {
    // Only root can become another user.
    'user haproxy': '',
    'group haproxy': '',
    'bind :443 ssl crt /etc/haproxy/site.pem alpn http/1.1': `bind 127.0.0.1:${port}${tls}`,
    ...changes,
    'check port 9464': 'check',
    '10.0.0.11:3000': `127.0.0.1:${one} port ${healthPortOf(one)}`,
    '10.0.0.12:3000': `127.0.0.1:${two} port ${healthPortOf(two)}`,
  })
  const program = await runHaproxy(t, filled)
  return await untilItProxies(program, `http${tls && 's'}://127.0.0.1:${port}`)
}

/**
 * Starts HAProxy with the configuration of Docker Compose.
 * @param port of each instance
 * @param healthPort port of its health checks
 * @param dnsPort of the DNS server that knows their addresses
 */
export async function startComposeHaproxy(
  t: Test,
  port: number,
  healthPort: number,
  dnsPort: number,
): Promise<Proxy> {
  const configuration = await readFile('deploy/haproxy/haproxy.cfg', 'utf8')
  const own = await freePort()
  const addresses = {
    'bind :8080': `bind 127.0.0.1:${own}`,
    'service:3000': `service:${port}`,
    'check port 9464': `check port ${healthPort}`,
    '127.0.0.11:53': `127.0.0.1:${dnsPort}`,
  }
  const program = await runHaproxy(
    t,
    fillIn(configuration, addresses, 'deploy/haproxy/haproxy.cfg'),
  )
  return await untilItProxies(program, `http://127.0.0.1:${own}`)
}

async function runHaproxy(t: Test, configuration: string): Promise<Program> {
  const file = join(await newFolder(t), 'haproxy.cfg')
  await writeFile(file, configuration)
  const args = ['-db', '-f', file]
  return await startProgram(t, { command: 'haproxy', package: 'haproxy', args, lastSignal })
}

/** Starts nginx with the example that docs/proxy.md links. */
export const startNginx: StartProxy = async (t, [one, two]) => {
  const example = await readFile(join(import.meta.dirname, 'nginx.conf'), 'utf8')
  const folder = await newFolder(t)
  const port = await freePort()
  // With the character after the port: a new port may start with the digits of another one.
  const addresses = {
    '127.0.0.1:8080;': `127.0.0.1:${port};`,
    '127.0.0.1:3001 ': `127.0.0.1:${one} `,
    '127.0.0.1:3002 ': `127.0.0.1:${two} `,
    // Debian's folders belong to another user.
    'http {': `http {${TEMPORARY.map((folder) => `${folder}_temp_path temp-${folder};`).join(' ')}`,
  }
  const filled = fillIn(example, addresses, 'nginx.conf')
  await writeFile(join(folder, 'nginx.conf'), filled)
  const args = ['-p', folder, '-e', 'stderr', '-c', 'nginx.conf']
  const options = { command: 'nginx', package: 'nginx-light', args, lastSignal } as const
  const program = await startProgram(t, options)
  const proxy = await untilItProxies(program, `http://127.0.0.1:${port}`)
  return { ...proxy, log: () => proxy.log() + readFileSync(join(folder, 'access.log'), 'utf8') }
}

const lastSignal = 'SIGTERM'
const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']

async function newFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'proxy-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Time in which a proxy has checked the health of each instance. */
const FIRST_CHECKS_MS = 1_500

/** Waits until a request without a token gets the 401 of an instance. */
async function untilItProxies({ process, output }: Program, url: string): Promise<Proxy> {
  await until('an instance responds through the proxy', async () => {
    if (process.exitCode !== null) throw new Error(output())
    return await send(url, { path: '/api/v1/queries/connections/none/assets-transfer' }).then(
      ({ status }) => status === 401,
      () => false,
    )
  })
  await sleep(FIRST_CHECKS_MS)
  return { url, log: output }
}
