import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { catalogOf } from '../../src/operator/catalog.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { portfolioLine } from '../support/importing.ts'
import { openAsOwner } from '../support/logins.ts'
import { catalogOfNewDatabase } from '../support/new-schema.ts'
import { operatorHere } from '../support/operator-process.ts'
import type { Recorded } from '../support/released/requests.ts'
import { startService } from '../support/service.ts'

const folder = join(import.meta.dirname, '../support/released')
const read = async (file: string) => gunzipSync(await readFile(join(folder, file))).toString()

/** Databases that earlier releases filled, and the responses of their services (README.md there). */
for (const { release, cursors } of [
  { release: '1.0.0', cursors: 410 },
  { release: '0007', cursors: 200 },
])
  t.test(`Database of ${release}: after \`migrate\`, each response is the same`, async (t) => {
    const { url } = await createDatabase(t, 'template0')
    const client = await openClient(t, url)
    await client.query(await read(`${release}.sql.gz`))
    // The dump sets search_path and more for its session.
    await client.query('discard all')
    const versions = async () =>
      (await client.query('select id, data_version, changed_at::text from connection order by id'))
        .rows
    const before = await versions()
    const { code, stderr } = await operatorHere(['migrate'], { DATABASE_URL: url })
    t.equal(code, 0, stderr)
    t.same(await versions(), before)
    t.match(await operatorHere(['verify'], { DATABASE_URL: url }), { code: 0 })
    t.same(await catalogOf(openAsOwner(t, url)), await catalogOfNewDatabase(t))

    const service = await startService(t, { databaseUrl: url })
    const recorded: Recorded[] = JSON.parse(await read(`${release}.json.gz`))
    const issued: Recorded[] = []
    for (const { path, token, headers = {}, status, body } of recorded) {
      const response = await service.get(path, { token, headers })
      const isOfCursor = /since=(?!start)/.test(path)
      t.equal(response.status, isOfCursor ? cursors : status, path)
      if (response.status === 200) {
        const [text, old] = [response.text, body].map(withoutCursor)
        if (text !== old) t.equal(text, old, path)
      } else t.equal(response.json().code, isOfCursor ? 'cursor_expired' : JSON.parse(body).code)
      if (/since=/.test(path) && status === 200) issued.push({ path, token, status, body })
    }
    t.equal(issued.length, 8)

    // A copy goes on from the last cursor that the earlier service issued.
    const [{ id } = { id: '' }] = (
      await client.query("select id from connection where label = 'A dozen rows'")
    ).rows
    const file = join(t.testdir({ 'rows.ndjson': portfolioLine(1) }), 'rows.ndjson')
    const imported = await operatorHere(
      ['import', 'portfolio-transactions', '--connection', id, file],
      { DATABASE_URL: url },
    )
    t.equal(imported.code, 0, imported.stderr)
    for (const { path, token, body } of issued) {
      const list = path.slice(0, path.indexOf('?'))
      const since = `${list}?since=${JSON.parse(body).nextCursor}`
      const { status, json } = await service.get(since, { token })
      t.equal(status, cursors)
      if (cursors === 410) t.equal(json().code, 'cursor_expired')
      else {
        const isChanged = /DEMOSMALL1.*portfolios/.test(path)
        const { items, removed } = json()
        t.same([items.length, removed.length], [isChanged ? 1 : 0, 0], path)
      }
    }
  })

const withoutCursor = (body = '') => body.replace(/"nextCursor":"[^"]*",/, '')
