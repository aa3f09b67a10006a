import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { PYTHON } from '../support/clients/python.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { operatorHere } from '../support/operator-process.ts'
import { needsProgram } from '../support/programs.ts'
import { CLIENT_VERSIONS, releasedPythonClient } from '../support/released/clients.ts'
import { checkReleasedCopy } from '../support/released/copies.ts'
import { startService } from '../support/service.ts'

await needsProgram(t, PYTHON, 'python3')

// test/operator/changelog.test.ts upgrades with the TypeScript clients.
const { url: databaseUrl } = await createDatabase(t, 'template0')
const client = await openClient(t, databaseUrl)
const dump = await readFile(join(import.meta.dirname, '../support/released/1.0.0.sql.gz'))
await client.query(gunzipSync(dump).toString())
const { code, stderr } = await operatorHere(['migrate'], { DATABASE_URL: databaseUrl })
if (code !== 0) throw new Error(stderr)
const service = await startService(t, { databaseUrl })

for (const version of CLIENT_VERSIONS)
  t.test(`Python ${version}: its copy of release 1.0.0 goes on after the upgrade`, (t) =>
    checkReleasedCopy(t, releasedPythonClient(version), service.url, databaseUrl),
  )
