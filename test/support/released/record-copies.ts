/**
 * Makes the copies of the released clients, `clients/copy-*.db.gz`, from the service of a release on its database. `npm pack`
 * and `pyproject-build --wheel` made the packages in `clients/`. The database is empty, and its owner a superuser:
 *
 *     createdb copies
 *     DATABASE_URL=postgres://postgres@127.0.0.1/copies node test/support/released/record-copies.ts /path/of/the/release
 */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import pg from 'pg'
import { DEMO } from '../../../seeds/sample-data.ts'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { until } from '../until.ts'
import {
  CLIENT_VERSIONS,
  type ReleasedClient,
  releasedPythonClient,
  releasedTypeScriptClient,
} from './clients.ts'

const [release = ''] = process.argv.slice(2)
const client = new pg.Client(process.env.DATABASE_URL)
await client.connect()
const dump = await readFile(join(import.meta.dirname, '1.0.0.sql.gz'))
await client.query(gunzipSync(dump).toString())
await client.end()
const port = String(await freePort())
const service = spawn(process.execPath, ['src/server.ts'], {
  cwd: release,
  env: { ...process.env, HOST: '127.0.0.1', PORT: port, LOG_LEVEL: 'error' },
  stdio: 'inherit',
})
const url = `http://127.0.0.1:${port}`
await until('the service is ready', () =>
  fetch(`${url}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  ),
)
const place = await mkdtemp(join(tmpdir(), 'copies-'))
const clients: ReleasedClient[] = []
for (const version of CLIENT_VERSIONS) {
  clients.push(await releasedTypeScriptClient(version, place))
  clients.push(releasedPythonClient(version))
}
for (const { copy, synchronize } of clients) {
  const file = join(place, 'copy.db')
  await synchronize(file, { url, token: DEMO.wealth.token, connection: 'DEMOSMALL1' })
  await writeFile(copy, gzipSync(await readFile(file), { level: 9 }))
  await rm(file)
}
service.kill()
await rm(place, { recursive: true })
