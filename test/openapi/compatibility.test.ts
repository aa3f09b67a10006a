import t from 'tap'
import { breakingChanges } from '../../tools/docs/breaking-changes.ts'
import { lastRelease, parseContract } from '../../tools/docs/releases.ts'
import { startService } from '../support/service.ts'

const { version, contract } = await lastRelease()

t.test(`GET /openapi.json: compatible with release ${version}`, async (t) => {
  const { text } = await (await startService(t)).get('/openapi.json')
  t.strictSame(breakingChanges(contract, parseContract(text)), [], 'see docs/compatibility.md')
})
