import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startDrivers } from '../support/clients/drivers.ts'
import { createDatabase } from '../support/database.ts'
import {
  changeHistory,
  copyEvents,
  localEvents,
  Model,
  openSite,
} from '../support/model/history.ts'
import { onServer } from '../support/template.ts'

t.setTimeout(600_000)

/** Statements of each writer before and after the beginning of an event. */
const ROUNDS = 6

/** @param times number of times that each event occurs */
async function follow(t: Test, url: string, times: number) {
  const model = new Model(await openSite(t, url), {
    drivers: startDrivers(t),
    file: join(t.testdir({}), 'copies.db'),
  })
  await model.start()
  const events = Array.from({ length: times }, () => [...localEvents, ...copyEvents(t)])
  await changeHistory(t, model, events.flat(), ROUNDS)
  t.ok(model.polls > 3_000, `${model.polls} polls`)
  await model.site.service.close()
}

t.test('Newest PostgreSQL: no copy is wrong, and only lost cursors expire', async (t) => {
  await follow(t, (await createDatabase(t)).url, 2)
})

t.test('Partitions: no copy is wrong, and only lost cursors expire', async (t) => {
  const { url } = await createDatabase(t)
  const script = new URL('../../docs/reference/partitions.sql', import.meta.url)
  await onServer(url, await readFile(script, 'utf8'))
  await follow(t, url, 1)
})
