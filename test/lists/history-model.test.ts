import t from 'tap'
import { createDatabase } from '../support/database.ts'
import { changeHistory, copyEvents, localEvents, Model, openSite } from './model/history.ts'

t.test('The history changes: no copy is wrong, and only lost cursors expire', async (t) => {
  const { url } = await createDatabase(t)
  const model = new Model(await openSite(t, url))
  await model.start()
  await changeHistory(t, model, [...localEvents, ...copyEvents(t)], 2)
})
