/** Follows docs/tutorials/first-production-service.md on a PostgreSQL of Debian, in a folder in place of `/`. */
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { thisRelease } from '../support/processes/release.ts'
import { libpqVariables } from '../support/processes/shell.ts'
import { makeCertificate } from '../support/servers/certificate.ts'
import { startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { followTutorial, type Journey } from '../support/tutorial.ts'

const DOMAIN = 'investments.example.com'
const { version } = JSON.parse(await readFile('package.json', 'utf8'))

const server = await startDebianPostgres(t)
const { certificate, key } = await makeCertificate(t)

const folder = await mkdtemp(join(tmpdir(), 'production-'))
const root = join(folder, 'root')
const home = join(folder, 'home')
const programs = join(folder, 'programs')
const running = join(folder, 'running')
for (const path of [home, programs, running]) await mkdir(path)
// What the Debian packages and certbot make.
for (const path of [
  'default',
  'haproxy',
  'prometheus',
  'systemd/system',
  `letsencrypt/live/${DOMAIN}`,
])
  await mkdir(join(root, 'etc', path), { recursive: true })
await mkdir(join(root, 'etc/letsencrypt/renewal-hooks/deploy'), { recursive: true })
await mkdir(join(root, 'opt'))

t.teardown(async () => {
  for (const file of await readdir(running)) {
    if (!file.endsWith('.pid')) continue
    try {
      // The process group of the unit.
      process.kill(-Number(await readFile(join(running, file), 'utf8')), 'SIGKILL')
    } catch {
      // It has ended already.
    }
  }
  await rm(folder, { recursive: true, force: true })
})

/** Finds a port that has no port of the page in it. Otherwise a part of 23001 would be replaced as well. */
async function portOfTest(): Promise<number> {
  for (;;) {
    const port = await freePort()
    if (!/3001|3002|9090/.test(String(port))) return port
  }
}

const [one, two] = [await portOfTest(), await portOfTest()]
const [healthOfOne, healthOfTwo] = [await portOfTest(), await portOfTest()]
const [tls, prometheus] = [await portOfTest(), await portOfTest()]

/** Paths and ports of the page and of the files that it installs, each with the one of this test. */
const REPLACEMENTS: [string, string][] = [
  ['/etc/', `${root}/etc/`],
  ['/opt/', `${root}/opt/`],
  ['/usr/local/bin/node', process.execPath],
  [`METRICS_PORT=1${one}`, `METRICS_PORT=${healthOfOne}`],
  [`METRICS_PORT=1${two}`, `METRICS_PORT=${healthOfTwo}`],
  ['13001', String(healthOfOne)],
  ['13002', String(healthOfTwo)],
  ['3001', String(one)],
  ['3002', String(two)],
  ['127.0.0.1:1$port', '127.0.0.1:$(health $port)'],
  ['127.0.0.1:9090', `127.0.0.1:${prometheus}`],
  ['bind :443', `bind 127.0.0.1:${tls}`],
  [`https://${DOMAIN}/`, `https://127.0.0.1:${tls}/`],
  ['@127.0.0.1/', `@127.0.0.1:${server.port}/`],
]
await writeFile(join(folder, 'replacements.json'), JSON.stringify(REPLACEMENTS))

function here(text: string): string {
  return REPLACEMENTS.reduce((replaced, [from, to]) => replaced.replaceAll(from, to), text)
}

const superuser = Object.entries(libpqVariables(server.url))
/** Programs in place of those that need root or systemd. */
const PROGRAMS = {
  sudo: `
    if [ "$1" = --user=postgres ]; then export ${superuser.map((pair) => pair.join('=')).join(' ')}; shift; fi
    exec "$@"`,
  systemctl: `
    exec '${process.execPath}' '${thisRelease}/test/support/servers/systemctl.ts' '${folder}' "$@"`,
  // The port of the health checks of an instance. Free ports have five digits, so there is none with a 1 in front.
  health: `
    if [ "$1" = ${one} ]; then echo ${healthOfOne}; else echo ${healthOfTwo}; fi`,
}
for (const [name, text] of Object.entries(PROGRAMS)) {
  await writeFile(join(programs, name), `#!/bin/sh -e${text}\n`)
  await chmod(join(programs, name), 0o755)
}

/** This checkout, in place of a clone. */
function checkout(release: string): string {
  const parts = ['package.json', 'operator', 'migrations', 'seeds', 'src', 'deploy', 'docs']
  const paths = parts.map((part) => `'${thisRelease}/${part}'`).join(' ')
  const target = `${root}/opt/investment-data-query-service-${release}`
  return `mkdir '${target}' && cp --recursive ${paths} '${target}'`
}

/** The last lines of each unit, which say why an instance does not become ready. */
async function journal(): Promise<string> {
  const logs = (await readdir(running)).filter((name) => name.endsWith('.log'))
  const tails = logs.map(async (name) => {
    const lines = (await readFile(join(running, name), 'utf8')).trim().split('\n')
    return `${name}:\n${lines.slice(-5).join('\n')}`
  })
  return (await Promise.all(tails)).join('\n\n')
}

t.test('first-production-service.md: each command does what the page says', async (t) => {
  const live = join(root, 'etc/letsencrypt/live', DOMAIN)
  await copyFile(certificate, join(live, 'fullchain.pem'))
  await copyFile(key, join(live, 'privkey.pem'))
  const packages = 'curl git haproxy npm openssl postgresql prometheus prometheus-node-exporter'
  const journey: Journey = {
    page: 'docs/tutorials/first-production-service.md',
    folder: home,
    environment: {
      HOME: home,
      PATH: [programs, dirname(process.execPath), process.env.PATH, '/usr/sbin'].join(':'),
      CURL_CA_BUNDLE: certificate,
    },
    instead: {
      // .ci/packages has installed them, and the packages of npm.
      [`sudo apt-get install --yes certbot ${packages}`]: ':',
      'sudo npm ci --omit=dev --ignore-scripts': `ln --symbolic '${thisRelease}/node_modules' .`,
      // The files of this checkout are tested. The next release has the same ones.
      'sudo git clone --branch vVERSION REPOSITORY /opt/investment-data-query-service-VERSION':
        checkout('VERSION'),
      'sudo git clone --branch vNEXT REPOSITORY /opt/investment-data-query-service-NEXT':
        checkout('NEXT'),
      // It needs a public name. The test has made a certificate.
      [`sudo certbot certonly --standalone --domain ${DOMAIN}`]: ':',
    },
    fillIn: (text, printed) => {
      const [token = ''] = /^idq_[\w-]{43}$/m.exec(printed) ?? []
      const [connection = ''] = /^[A-Za-z0-9]{22}$/m.exec(printed) ?? []
      return here(text)
        .replace('APP_TOKEN=idq_…', `APP_TOKEN=${token}`)
        .replace('CONNECTION_TOKEN=…', `CONNECTION_TOKEN=${connection}`)
    },
    asDocumented: (printed) => printed.replace(new RegExp(`^${version}$`), 'VERSION'),
  }
  try {
    await followTutorial(t, journey)
  } catch (error) {
    t.comment(await journal())
    throw error
  }
})
