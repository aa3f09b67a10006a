import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { freePort } from '../../../../tools/embedded-postgres/free-port.ts'
import { until } from '../../../support/until.ts'
import { blocksOf, withOwn } from '../documented-commands.ts'
import { type Program, startProgram } from '../processes/program.ts'
import { askOnce, type Site } from '../proxied-load.ts'
import { makeCertificate } from './certificate.ts'

/** A proxy before two instances, and its log so far. */
export type StartProxy = (
  t: Test,
  instances: readonly [number, number],
) => Promise<Site & { said(): string }>

/** With the configuration that docs/operations.md shows. */
export const startHaproxy: StartProxy = async (t, [one, two]) => {
  const [configuration = ''] = await blocksOf('Behind a proxy')
  const { certificate, key } = await makeCertificate(t)
  const chain = await readFile(certificate, 'utf8')
  const folder = await newFolder(t)
  const port = await freePort()
  await writeFile(join(folder, 'site.pem'), chain + (await readFile(key, 'utf8')))
  const own = withOwn(configuration, {
    'bind :443': `bind 127.0.0.1:${port}`,
    '/etc/haproxy/site.pem': join(folder, 'site.pem'),
    '10.0.0.11:3000': `127.0.0.1:${one}`,
    '10.0.0.12:3000': `127.0.0.1:${two}`,
  })
  await writeFile(join(folder, 'haproxy.cfg'), own)
  const args = ['-db', '-f', `${folder}/haproxy.cfg`]
  const options = { command: 'haproxy', package: 'haproxy', args, lastSignal } as const
  const program = await startProgram(t, options)
  return await answering(program, {
    url: `https://127.0.0.1:${port}`,
    certificate: chain,
  })
}

/** With the example that docs/operations.md points to. */
export const startNginx: StartProxy = async (t, [one, two]) => {
  const example = await readFile(join(import.meta.dirname, 'nginx.conf'), 'utf8')
  const folder = await newFolder(t)
  const port = await freePort()
  const places = {
    '127.0.0.1:8080': `127.0.0.1:${port}`,
    '127.0.0.1:3001': `127.0.0.1:${one}`,
    '127.0.0.1:3002': `127.0.0.1:${two}`,
    // What Debian has chosen for them belongs to another user.
    'http {': `http {${TEMPORARY.map((kind) => `${kind}_temp_path temp-${kind};`).join(' ')}`,
  }
  const own = withOwn(example, places, 'nginx.conf')
  await writeFile(join(folder, 'nginx.conf'), own)
  const args = ['-p', folder, '-e', 'stderr', '-c', 'nginx.conf']
  const options = { command: 'nginx', package: 'nginx-light', args, lastSignal } as const
  const program = await startProgram(t, options)
  return await answering(program, { url: `http://127.0.0.1:${port}` })
}

const lastSignal = 'SIGTERM'
const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']

async function newFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'proxy-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** So long until a proxy has asked each instance whether it is ready, in ms. */
const FIRST_CHECKS_MS = 1_500

/** Once it hands requests on, which the service refuses to a client that does not say who it is. */
async function answering(program: Program, site: Site) {
  const { said } = program
  await until('an instance answers through the proxy', async () => {
    if (program.process.exitCode !== null) throw new Error(said())
    return await askOnce(site, { path: '/api/v1/queries/connections/none/assets-transfer' }).then(
      ({ status }) => status === 401,
      () => false,
    )
  })
  await sleep(FIRST_CHECKS_MS)
  return { ...site, said }
}
