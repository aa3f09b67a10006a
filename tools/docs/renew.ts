/** Writes the committed examples, document, help of the admin CLI, metrics and statements, and the rows of the clients. */
import { writeFile } from 'node:fs/promises'
import t from 'tap'
import { EXAMPLES } from '../../src/http/openapi/examples.ts'
import { lists } from '../../src/routes/lists.ts'
import { createDatabase } from '../../test/support/database.ts'
import { openAsOwner } from '../../test/support/logins.ts'
import { startSeededService } from '../../test/support/seeded-service.ts'
import { startService } from '../../test/support/service.ts'
import { clientRows } from './client-rows.ts'
import { DOCUMENT, formatJson } from './committed.ts'
import { documentFaults } from './document-faults.ts'
import { examplesOf } from './examples.ts'
import { COMMANDS_FILE, helpText } from './help-text.ts'
import { METRICS_FILE, metricsText, scrapeAll } from './metrics-text.ts'
import { PLAIN_PAGE, renderPlainPage } from './page/plain-text.ts'
import { PAGE, renderPage } from './page/render.ts'
import { STORIES, storiesText } from './page/stories.ts'
import { SCHEMA_FILE, schemaText } from './schema-text.ts'
import { STATEMENTS_FILE, statementsText } from './sql-text.ts'

t.test('docs:renew: examples', async (t) => {
  const examples = await examplesOf(await startSeededService(t))
  await writeFile(EXAMPLES, formatJson(JSON.stringify(examples)))
})

t.test('docs:renew: document, page and rows of the clients', async (t) => {
  // A service reads the examples at start, so this is a new one.
  const service = await startService(t)
  const { text } = await service.get('/openapi.json')
  t.strictSame(documentFaults(JSON.parse(text)), [])
  await writeFile(DOCUMENT, formatJson(text))
  await writeFile(PAGE, await renderPage(text))
  await writeFile(PLAIN_PAGE, renderPlainPage(text))
  await writeFile(STORIES, await storiesText())
  for (const [file, rows] of clientRows(text)) await writeFile(file, rows)
})

t.test('docs:renew: schema', async (t) => {
  const { url } = await createDatabase(t)
  await writeFile(SCHEMA_FILE, await schemaText(openAsOwner(t, url)))
})

t.test('docs:renew: statements', async () => {
  await writeFile(STATEMENTS_FILE, statementsText(lists))
})

t.test('docs:renew: commands', async () => {
  await writeFile(COMMANDS_FILE, `${await helpText()}\n`)
})

t.test('docs:renew: metrics', async (t) => {
  await writeFile(METRICS_FILE, metricsText(await scrapeAll(t)))
})
