import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import type { LogCommand } from '../http/log-writer.ts'
import { addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { startServiceProcess, untilReadyIs } from '../support/processes/service-process.ts'
import { until } from '../support/until.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf(await addSampleData(db, 20)).slice(0, 2)

/** Starts the service with a log line for each request. */
async function start(t: Test, stdout?: number) {
  const metricsPort = await freePort()
  const environment = {
    DATABASE_URL: login,
    LOG_LEVEL: 'info',
    METRICS_PORT: String(metricsPort),
    SHUTDOWN_DELAY_MS: '0',
  }
  const service = await startServiceProcess(t, environment, undefined, stdout)
  await untilReadyIs(service, 200)
  const dropped = async () => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    return Number(/^log_lines_dropped_total (\d+)$/m.exec(text)?.[1])
  }
  const chunks: Buffer[] = []
  service.process.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
  const log = () => Buffer.concat(chunks).toString()
  const golden = await recordOk(service.url, requests)
  const load = { url: service.url, golden, clients: 16, pauseMs: 0, limitMs: 10_000 }
  return { service, log, dropped, startLoad: () => startGoldenLoad(t, load) }
}

t.test('reader of the log stops: every request gets a response, drops are counted', async (t) => {
  const { service, log, dropped, startLoad } = await start(t)
  const { stdout } = service.process
  stdout?.pause()
  const stop = startLoad()
  await until('lines are dropped', async () => (await dropped()) > 100, 120_000)
  t.equal(await service.ready(), 200)
  const report = await stop()
  assertAllAnswered(t, report)

  stdout?.resume()
  await until('the service reports the drops', () => log().includes('log lines were dropped'))
  const lines = log()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const total = await dropped()
  t.match(lines.at(-1), { level: 40, lines: total }, 'one warning, after the lines that waited')
  const logged = lines.filter(({ msg }) => msg === 'request').length
  t.equal(logged + total, report.sent + requests.length, 'each line is in the log or counted')

  stdout?.pause()
  // 600 lines: more than the pipe and its reader hold.
  for (let n = 0; n < 300; n += 1) await recordOk(service.url, requests)
  t.equal(await service.end('SIGTERM'), 0, 'lines that wait do not prevent the exit')
})

t.test('full disk: every request gets a response, and all lines count as dropped', async (t) => {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  const { service, dropped, startLoad } = await start(t, full)
  const stop = startLoad()
  await until('lines are dropped', async () => (await dropped()) > 100, 120_000)
  const report = await stop()
  assertAllAnswered(t, report)
  t.ok((await dropped()) >= report.sent)
  t.equal(await service.end('SIGTERM'), 0)
  t.equal(service.output(), '', 'nothing on standard error')
})

t.test(
  'disk with room for a part of a line: the next whole line begins a line of its own',
  async (t) => {
    const file = join(t.testdir({}), 'service.log')
    const stdout = openSync(file, 'a')
    t.teardown(() => closeSync(stdout))
    const program = join(import.meta.dirname, '../http/log-writer.ts')
    const writer = spawn(process.execPath, [program], {
      stdio: ['ignore', stdout, 'inherit', 'ipc'],
    })
    t.teardown(() => writer.kill('SIGKILL'))
    await once(writer, 'message')
    const write = async (line: string) => {
      writer.send({ write: [line] } satisfies LogCommand)
      await once(writer, 'message')
    }
    // The kernel writes what fits, and reports the error of the rest, as a full disk does.
    const limitFile = (bytes: number | 'unlimited') =>
      execFileSync('prlimit', ['--pid', String(writer.pid), `--fsize=${bytes}:unlimited`])
    limitFile(6)
    await write('a line that is cut')
    // Node.js reports no error of a write that wrote a part, but of the next one.
    await write('a line without room')
    limitFile('unlimited')
    await write('a whole line')
    const [cut, next] = readFileSync(file, 'utf8').split('\n')
    t.strictSame([cut, next], ['a line', 'a whole line'])
  },
)

t.test('closed log pipe: every request gets a response', async (t) => {
  const { service, dropped, startLoad } = await start(t)
  service.process.stdout?.destroy()
  const stop = startLoad()
  await until('lines are dropped', async () => (await dropped()) > 100, 120_000)
  assertAllAnswered(t, await stop())
  t.equal(await service.end('SIGTERM'), 0)
})
