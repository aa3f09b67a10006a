import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { openTestDatabase } from '../support/new-database.ts'
import { startServiceProcess, untilReadyIs } from '../support/processes/service-process.ts'

/** Sends SIGHUP to the process as soon as src/server.js runs, until the service listens. */
const PRELOAD = `
  import { getCompileCacheDir } from 'node:module'
  const timer = setInterval(() => {
    // src/server.js turns the cache on.
    if (getCompileCacheDir() === undefined) return
    globalThis.earlySignals = (globalThis.earlySignals ?? 0) + 1
    if (globalThis.earlySignals > 20) clearInterval(timer)
    process.kill(process.pid, 'SIGHUP')
  }, 1)`

t.test('SIGHUP while the service starts: it starts', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'signal-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const preload = join(folder, 'preload.mjs')
  await writeFile(preload, PRELOAD)
  const { login } = await openTestDatabase(t)
  const environment = { DATABASE_URL: login, NODE_OPTIONS: `--import=${preload}` }
  const service = await startServiceProcess(t, environment)
  // Each signal replaces the connections.
  await untilReadyIs(service, 200)
})
