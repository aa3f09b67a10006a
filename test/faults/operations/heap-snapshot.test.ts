import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { until } from '../../support/until.ts'
import { withOwn } from '../support/documented-commands.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'

/** By the setting and the signal of docs/runbook.md. */
const runbook = await readFile(new URL('../../../docs/runbook.md', import.meta.url), 'utf8')
const [, setting = ''] = /NODE_OPTIONS: (.*)/.exec(runbook) ?? []
const [, signal = ''] = /kill --signal (\S+) service/.exec(runbook) ?? []
const { url } = await createDatabase(t)
const login = await loginOfService(t, openAsOwner(t, url), url)

t.test('A running service writes a snapshot of its heap, and goes on', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'heap-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const NODE_OPTIONS = withOwn(setting, { '/tmp': folder })
  const service = await startServiceProcess(t, { DATABASE_URL: login, NODE_OPTIONS })
  service.process.kill(signal as NodeJS.Signals)
  const isWhole = async () => {
    const [name] = await readdir(folder)
    if (name === undefined) return false
    return /\]\s*\}\s*$/.test((await readFile(join(folder, name), 'utf8')).slice(-20))
  }
  await until('the snapshot is there', isWhole)
  t.equal(await service.ready(), 200)
})

t.test('One that was not started for it takes no notice of the signal', async (t) => {
  const service = await startServiceProcess(t, { DATABASE_URL: login })
  service.process.kill(signal as NodeJS.Signals)
  await sleep(1_000)
  t.equal(service.process.exitCode, null)
  t.equal(await service.ready(), 200)
})
