import t from 'tap'
import { createDatabase } from '../support/database.ts'
import {
  changeHistory,
  copyEvents,
  localEvents,
  Model,
  openSite,
} from '../support/model/history.ts'
import { isCitus } from '../support/template.ts'

t.test('The history changes: no copy is wrong, and only lost cursors expire', async (t) => {
  const { url } = await createDatabase(t)
  const model = new Model(await openSite(t, url))
  await model.start()
  // Citus rejects TRUNCATE of rows of connections, and copies of a database with shards.
  const events = isCitus
    ? localEvents.filter(({ name }) => name !== 'TRUNCATE')
    : [...localEvents, ...copyEvents(t)]
  await changeHistory(t, model, events, 1)
})
