import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { addAwkwardRows } from '../support/awkward-rows.ts'
import { PYTHON } from '../support/clients/python.ts'
import { needsProgram, run } from '../support/programs.ts'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'

await needsProgram(t, PYTHON, 'python3')

const { db, get } = await startService(t)
const { token, connection } = await addCaller(db)
const folder = t.testdir({})

const READ = `
import csv, json, sys
with open(sys.argv[1], newline='', encoding='utf-8') as file:
    json.dump(list(csv.DictReader(file, strict=True)), sys.stdout)
`

for (const list of ['portfolio', 'account'] as const) {
  t.test(`${list}: Python's csv module reads the fields and digits of the JSON`, async (t) => {
    await addAwkwardRows(db, connection, list)
    const csv = await get(connection[list], { token, headers: { accept: 'text/csv' } })
    const file = join(folder, `${list}.csv`)
    await writeFile(file, csv.text)
    const records = JSON.parse(await run(PYTHON, ['-c', READ, file]))

    const accept = 'application/json;IEEE754Compatible=true'
    const { items } = (await get(connection[list], { token, headers: { accept } })).json()
    const none = { retentionFrom: null, retentionTo: null }
    const expected = items.map(({ retentionDetail, ...item }: Record<string, object>) => {
      const fields = { ...item, ...(list === 'portfolio' && (retentionDetail ?? none)) }
      // csv.DictReader does not distinguish null from an empty text.
      return Object.entries(fields).map(([name, value]) => [name, value ?? ''])
    })
    t.equal(records.length, Number(csv.headers.get('x-total-count')))
    t.strictSame(
      records.map((record: object) => Object.entries(record)),
      expected,
    )
  })
}
