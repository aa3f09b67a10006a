import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openTestDatabase } from '../support/new-database.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { addCaller, addEqualRows } from '../support/rows.ts'
import {
  type StartProxy,
  startHaproxy,
  startNginx,
  startPlainHaproxy,
  startTlsHaproxy,
} from '../support/servers/proxies.ts'
import { until } from '../support/until.ts'

/** 50 MB: more than the buffers between the service and a client that reads slowly. */
const ROWS = 10_000
const description = 'x'.repeat(5_000)
const { db, login } = await openTestDatabase(t)
const { token, connection } = await addCaller(db)
await addEqualRows(db, 'account', connection, { count: ROWS, description })
const { port } = await startServiceProcess(t, { DATABASE_URL: login })
const ports = [port, port] as const
const headers = { authorization: `Bearer ${token}`, accept: 'application/x-ndjson' }

/** Changes the data, while a client reads the export, which the service then breaks off. */
const changeData = () => addEqualRows(db, 'account', connection, { count: 1 })

interface Export {
  /** True if the client takes the response for a complete one. */
  isComplete: boolean
  rows: number
}

/** Reads an export by curl, slowly. The data changes when it has the first bytes. */
async function readByCurl(url: string, args: string[]): Promise<Export> {
  const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const options = ['-sk', '--limit-rate', '4M', '--max-time', '60', ...args, ...fields]
  const curl = spawn('curl', [...options, url + connection.account])
  let rows = 0
  let change: Promise<void> | undefined
  curl.stdout.on('data', (chunk: Buffer) => {
    change ??= changeData()
    rows += linesIn(chunk)
  })
  const [code] = await once(curl, 'close')
  await change
  return { isComplete: code === 0, rows }
}

const linesIn = (chunk: Buffer) => chunk.toString('latin1').split('\n').length - 1

/** Reads an export by the HTTP/2 client of Node.js, slowly. */
async function readByHttp2(url: string): Promise<Export> {
  const session = connect(url, { rejectUnauthorized: false })
  session.on('error', () => {})
  const stream = session.request({ ':path': connection.account, ...headers })
  const read = { isComplete: true, rows: 0 }
  let change: Promise<void> | undefined
  try {
    for await (const chunk of stream) {
      change ??= changeData()
      read.rows += linesIn(chunk)
      await sleep(2)
    }
  } catch {
    read.isComplete = false
  }
  if (stream.rstCode !== 0) read.isComplete = false
  session.destroy()
  await change
  return read
}

const clients: Record<string, (url: string) => Promise<Export>> = {
  curl: (url) => readByCurl(url, []),
  'curl --http1.1': (url) => readByCurl(url, ['--http1.1']),
  'curl --http2-prior-knowledge': (url) => readByCurl(url, ['--http2-prior-knowledge']),
  'node:http2': readByHttp2,
}

const proxies: Record<string, StartProxy> = {
  'HAProxy with TLS': startHaproxy,
  'HAProxy without TLS': startPlainHaproxy,
  nginx: startNginx,
}

for (const [name, start] of Object.entries(proxies))
  t.test(`${name}: a client sees that an export is cut`, async (t) => {
    const { url } = await start(t, ports)
    for (const [client, read] of Object.entries(clients)) {
      const { isComplete, rows } = await read(url)
      t.notOk(isComplete, `${client}: ${rows} of ${ROWS} rows`)
      t.ok(rows < ROWS, client)
    }
  })

t.test('clients that continue a download: they end with an error', async (t) => {
  const { url } = await startPlainHaproxy(t, ports)
  const folder = await mkdtemp(join(tmpdir(), 'download-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const fields = Object.entries(headers).map(([name, value]) => `--header=${name}: ${value}`)
  const address = url + connection.account
  const exitOf = (command: string, args: string[]) =>
    new Promise<number>((resolve) => {
      execFile(command, args, (error) => resolve(Number(error?.code ?? 0)))
    })
  const wget = ['--quiet', '--limit-rate=4m', '--waitretry=0', '--tries=3', ...fields]
  const file = join(folder, 'wget')
  const exit = exitOf('wget', [...wget, `--output-document=${file}`, address])
  await until(
    'wget has the first rows',
    () => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0,
  )
  await changeData()
  t.equal(await exit, 8)
  const curlFields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const curl = ['-s', '--fail', ...curlFields, '-o', file, '-C', '-', address]
  t.equal(await exitOf('curl', curl), 22)
})

const H2 = { 'option disable-h2-upgrade': '' }

t.test('HAProxy 2.6 with HTTP/2: a cut export would look complete', async (t) => {
  const tls = await startTlsHaproxy(t, ports, 'h2,http/1.1', H2)
  const plain = await startPlainHaproxy(t, ports, H2)
  const read = [
    await readByCurl(tls.url, []),
    await readByCurl(plain.url, ['--http2-prior-knowledge']),
    await readByHttp2(tls.url),
  ]
  for (const { isComplete, rows } of read) {
    t.ok(isComplete)
    t.ok(rows < ROWS)
  }
})
