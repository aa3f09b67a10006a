/** Writes what the repository keeps of the document: the examples in it, itself, the client's types. */
import { writeFile } from 'node:fs/promises'
import t from 'tap'
import { DEMO_RESPONSES } from '../../src/http/openapi/demo-responses.ts'
import { startService } from '../support/service.ts'
import { CLIENT_TYPES, clientTypes, DOCUMENT, kept } from './committed.ts'
import { DEMO_CONNECTION, DEMO_TOKEN, startSeededService } from './seeded-service.ts'

t.test('the examples are answers of the seeded service', async (t) => {
  const service = await startSeededService(t)
  for (const { request, file } of Object.values(DEMO_RESPONSES)) {
    const answer = await service.get(`${DEMO_CONNECTION}/${request}`, { token: DEMO_TOKEN })
    t.equal(answer.status, 200, request)
    await writeFile(file, kept(answer.text))
  }
})

t.test('the document has them, and the types are made of it', async (t) => {
  // A service reads the examples when it starts.
  const { text } = await (await startService(t)).get('/openapi.json')
  await writeFile(DOCUMENT, kept(text))
  await writeFile(CLIENT_TYPES, await clientTypes(text))
})
