/** Writes the committed examples and the document. */
import { writeFile } from 'node:fs/promises'
import t from 'tap'
import { DEMO_RESPONSES, isJson } from '../../src/http/openapi/demo-responses.ts'
import { startService } from '../support/service.ts'
import { DOCUMENT, formatJson } from './committed.ts'
import { DEMO_CONNECTION, DEMO_TOKEN, startSeededService } from './seeded-service.ts'

t.test('examples: responses with the sample data', async (t) => {
  const service = await startSeededService(t)
  for (const demo of DEMO_RESPONSES) {
    const { request, mediaType, file } = demo
    const options = { token: DEMO_TOKEN, headers: { accept: mediaType } }
    const response = await service.get(`${DEMO_CONNECTION}/${request}`, options)
    t.equal(response.status, 200, request)
    await writeFile(file, isJson(demo) ? formatJson(response.text) : response.text)
  }
})

t.test('docs:renew: document', async (t) => {
  // A service reads the examples at start, so this is a new one.
  const { text } = await (await startService(t)).get('/openapi.json')
  await writeFile(DOCUMENT, formatJson(text))
})
