import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { fillIn } from '../support/documented-commands.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { until } from '../support/until.ts'

/** Uses the setting and the signal of docs/runbook.md. */
const runbook = await readFile(new URL('../../docs/runbook.md', import.meta.url), 'utf8')
const [, setting = ''] = /NODE_OPTIONS: (.*)/.exec(runbook) ?? []
const [, signal = ''] = /kill --signal (\S+) service/.exec(runbook) ?? []
const { login } = await openTestDatabase(t)

t.test('Signal with NODE_OPTIONS: the service writes a heap snapshot and goes on', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'heap-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const NODE_OPTIONS = fillIn(setting, { '/tmp': folder }, 'docs/runbook.md')
  const service = await startServiceProcess(t, { DATABASE_URL: login, NODE_OPTIONS })
  service.process.kill(signal as NodeJS.Signals)
  const isComplete = async () => {
    const [name] = await readdir(folder)
    if (name === undefined) return false
    return /\]\s*\}\s*$/.test((await readFile(join(folder, name), 'utf8')).slice(-20))
  }
  await until('the snapshot is complete', isComplete)
  t.equal(await service.ready(), 200)
})

t.test('Signal without NODE_OPTIONS: the service ignores it', async (t) => {
  const service = await startServiceProcess(t, { DATABASE_URL: login })
  service.process.kill(signal as NodeJS.Signals)
  await sleep(1_000)
  t.equal(service.process.exitCode, null)
  t.equal(await service.ready(), 200)
})
