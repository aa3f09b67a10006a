import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { createDatabase } from '../support/database.ts'
import { operatorHere } from '../support/operator-process.ts'
import { addCaller, addPortfolioTransactions, addresses, lists } from '../support/rows.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { startService } from '../support/service.ts'
import { expireCursors } from '../support/state.ts'

const { token, connections } = DEMO.wealth
const large = addresses(connections.large.token)
const LISTS = ['portfolio', 'account'] as const

const service = await startSeededService(t)
const { url, get } = service
const operate = (...args: string[]) => operatorHere(args, { DATABASE_URL: service.databaseUrl })
const read = async (path: string) => (await get(path, { token })).json()
const advance = async () => {
  const { stderr, json } = await operate('demo', 'advance', '--json')
  t.equal(stderr, '')
  return json()
}

t.test('demo advance: each day adds, classifies, corrects and cancels rows', async (t) => {
  const small = await read(addresses(connections.small.token).portfolio)
  const before = await Promise.all(LISTS.map((list) => read(`${large[list]}?limit=10000`)))
  const cursors = await Promise.all(
    LISTS.map(async (list) => (await read(`${large[list]}?since=start&limit=10000`)).nextCursor),
  )
  let last = ''
  // The first day begins a month, with two more movements of cash. The stories change on the other two.
  for (const [added, corrected] of [
    [8, 4],
    [7, 4],
    [6, 5],
  ]) {
    const { day, ...counts } = await advance()
    t.match(counts, { added, corrected, cancelled: 2 })
    t.ok(day > last, day)
    last = day
    for (const [index, list] of LISTS.entries()) {
      const page = await read(`${large[list]}?since=${cursors[index]}`)
      cursors[index] = page.nextCursor
      const { id } = lists[list]
      const old = new Map(before[index].items.map((row: Record<string, string>) => [row[id], row]))
      const changes = page.items.map((row: Record<string, string>) => {
        const { type, amount } = (old.get(row[id]) ?? {}) as Record<string, string>
        if (type === undefined) return `added ${row.operationDateDay}`
        if (type !== row.type) return `${type} classified`
        return amount === row.amount ? 'unchanged' : 'corrected'
      })
      const added = Array(list === 'account' && day === '2026-01-01' ? 5 : 3).fill(`added ${day}`)
      t.same(changes.sort(), ['UNKNOWN classified', ...added, 'corrected'], `${list} ${day}`)
      t.equal(page.removed.length, 1)
      before[index] = await read(`${large[list]}?limit=10000`)
      t.equal(page.totalItems, before[index].totalItems)
    }
  }
  t.same(await read(addresses(connections.small.token).portfolio), small)
  t.same((await operate('verify', '--json')).json().differences, [])
})

t.test('demo advance: fails without the sample data, and changes nothing', async (t) => {
  const service = await startService(t)
  const caller = await addCaller(service.db)
  await addPortfolioTransactions(service.db, caller.connection, {}, { type: 'UNKNOWN' })
  const before = await service.get(caller.connection.portfolio, caller)
  const failed = await operatorHere(['demo', 'advance'], { DATABASE_URL: service.databaseUrl })
  t.match(failed, { code: 1, stderr: 'The database does not have the sample data.\n' })
  t.equal((await service.get(caller.connection.portfolio, caller)).text, before.text)
  const { url } = await createDatabase(t)
  t.match(await operatorHere(['demo', 'advance'], { DATABASE_URL: url }), { code: 1 })
})

t.test('guide: the program keeps a copy through a day', async (t) => {
  const guide = await readFile(new URL('../../src/http/openapi/guide.md', import.meta.url), 'utf8')
  const saved = /Save them as `(\S+)`, and run `node \1`[^\n]*\n\n```js\n(.*?)```/s
  const [, name = '', program = ''] = saved.exec(guide) ?? []
  // A folder as `npm init -y` makes it.
  const folder = t.testdir({ 'package.json': '{ "type": "commonjs" }' })
  const file = join(folder, name)
  await writeFile(file, program.replace('https://HOST', url))
  const run = async () => {
    const flags = ['--disable-warning=ExperimentalWarning', file]
    const env = { ...process.env, APP_TOKEN: token, CONNECTION_TOKEN: connections.large.token }
    const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd: folder, env })
    const [last = ''] = stdout.trim().split('\n').slice(-1)
    const [, rows, total] = /^(\d+) rows, (\d+) in the list$/.exec(last) ?? []
    t.equal(rows, total)
    return stdout.trim().split('\n').length
  }
  const isEqual = async () => {
    const { text } = await get(`${large.portfolio}?limit=10000`, { token })
    const digits = (_: string, value: unknown, { source }: { source: string }) =>
      typeof value === 'number' ? source : value
    // TypeScript does not know the third parameter.
    const { items } = JSON.parse(text, digits as never) as { items: { transactionId: string }[] }
    const { DatabaseSync } = await import('node:sqlite')
    const copy = new DatabaseSync(join(folder, 'copy.db'))
    const rows = copy.prepare('select id, item from copy order by id').all()
    copy.close()
    const expected = items
      .map((item) => ({ id: item.transactionId, item: JSON.stringify(item) }))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
    // Strings, because t.same() takes seconds for thousands of rows.
    t.equal(JSON.stringify(rows), JSON.stringify(expected))
  }
  t.ok((await run()) > 5, 'the first copy has several pages')
  await isEqual()
  await advance()
  t.equal(await run(), 1)
  await isEqual()
  await expireCursors(service.db)
  t.ok((await run()) > 5, 'after a 410, the copy starts again')
  await isEqual()
  const { DatabaseSync } = await import('node:sqlite')
  const copy = new DatabaseSync(join(folder, 'copy.db'))
  copy.exec(`update cursor set value = 'of-a-newer-release'`)
  copy.close()
  t.ok((await run()) > 5, 'after an invalid cursor, the copy starts again')
  await isEqual()
})

t.test('demo advance: the same rows in each database, day by day or at once', async (t) => {
  const other = await startSeededService(t)
  const operateOther = (...args: string[]) =>
    operatorHere(args, { DATABASE_URL: other.databaseUrl })
  t.match(await operateOther('demo', 'advance', '--days', '4'), { code: 0 })
  for (const list of LISTS) {
    const path = `${large[list]}?limit=10000`
    t.equal((await other.get(path, { token })).text, (await get(path, { token })).text)
  }
  for (const days of ['0', '367', '-1', 'x'])
    t.match(await operateOther('demo', 'advance', '--days', days), { code: 2 })
})
