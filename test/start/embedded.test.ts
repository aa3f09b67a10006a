import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { EmbeddedDatabaseInUse, startEmbedded } from '../../tools/embedded-postgres/embedded.ts'
import { findRunning } from '../../tools/embedded-postgres/running.ts'

t.test('started again, the embedded database has its data and another port', async (t) => {
  const folder = await temporaryFolder(t)
  const first = await startEmbedded(folder)
  await query(first.url, "create table kept as select 'Zürich' as place")
  await first.stop()
  t.equal(await findRunning(folder), undefined)
  const second = await startEmbedded(folder)
  t.teardown(() => second.stop())
  t.same(await query(second.url, 'select place from kept'), [{ place: 'Zürich' }])
})

t.test('of two first starts at once, one runs and the other is told where', async (t) => {
  const folder = await temporaryFolder(t)
  const starts = await Promise.allSettled([startEmbedded(folder), startEmbedded(folder)])
  const [started] = starts.filter((start) => start.status === 'fulfilled')
  const [refused] = starts.filter((start) => start.status === 'rejected')
  t.teardown(() => started?.value.stop())
  t.ok(refused?.reason instanceof EmbeddedDatabaseInUse)
  t.equal(refused?.reason.url, started?.value.url)
  t.equal(await findRunning(folder), started?.value.url)
  t.notMatch(refused?.reason.message, /postgresql:/, 'the password is not in the message')
})

for (const signal of ['SIGINT', 'SIGKILL'] as const)
  t.test(`${signal} to its process leaves no database behind, and a next one starts`, async (t) => {
    const folder = await temporaryFolder(t)
    const module = join(import.meta.dirname, '../../tools/embedded-postgres/embedded.ts')
    const program = `import { startEmbedded } from ${JSON.stringify(module)}
      console.log((await startEmbedded(${JSON.stringify(folder)})).url)`
    // In a process group of its own, which gets the signal as a terminal sends it: all of it at once.
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    const [url] = await once(child.stdout.setEncoding('utf8'), 'data')
    await query(url.trim(), 'create table kept as select 1 as one')
    process.kill(-Number(child.pid), signal)
    await once(child, 'exit')
    while (await findRunning(folder)) await sleep(10)
    const next = await startEmbedded(folder)
    t.teardown(() => next.stop())
    t.same(await query(next.url, 'select one from kept'), [{ one: 1 }])
  })

async function temporaryFolder(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'investment-data-test-'))
  await chmod(folder, 0o711)
  t.teardown(() => rm(folder, { recursive: true }))
  return folder
}

async function query(connectionString: string, text: string) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  return client
    .query(text)
    .then(
      ({ rows }) => rows,
      (error) => error,
    )
    .finally(() => client.end())
}
