import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { startService } from '../support/service.ts'
import { CLIENT_TYPES, clientTypes, DOCUMENT, kept, RENEWAL } from './committed.ts'

const service = await startService(t)

t.test('/openapi.json is the committed document, digit by digit', async (t) => {
  const served = await service.get('/openapi.json')
  t.match(served.headers.get('content-type'), /^application\/json/)
  t.equal(await readFile(DOCUMENT, 'utf8'), kept(served.text), `where it is not: ${RENEWAL}`)
})

t.test('the page reads that document', async (t) => {
  const read = await fetch(`${service.url}/docs/json`)
  t.equal(read.url, `${service.url}/openapi.json`)
})

t.test('the committed types of the client are those of the committed document', async (t) => {
  const types = await clientTypes(await readFile(DOCUMENT, 'utf8'))
  t.equal(await readFile(CLIENT_TYPES, 'utf8'), types, `where they are not: ${RENEWAL}`)
})

t.test('the linter has nothing to say, but for the exceptions in redocly.yaml', async (t) => {
  const redocly = fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'))
  const environment = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [redocly, 'lint', fileURLToPath(DOCUMENT), '--format=json'],
    { env: { ...process.env, ...environment } },
  ).catch((error: { stdout: string }) => error)
  const { totals, problems } = JSON.parse(stdout)
  t.strictSame({ ...totals, problems }, { errors: 0, warnings: 0, ignored: 0, problems: [] })
})
