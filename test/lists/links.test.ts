import t, { type Test } from 'tap'
import { addCaller, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get, url } = await startService(t)

/** The targets of a Link header by their rel, resolved against the address that was asked for. */
function targets(t: Test, link: string | null, asked: string): Record<string, string> {
  const all = [...String(link).matchAll(/<([^>]*)>; rel="([a-z]+)"(?:, |$)/g)]
  t.equal(all.map(([whole]) => whole).join(''), link, 'the header is nothing but links')
  return Object.fromEntries(
    all.map(([, target, rel]) => [rel, new URL(String(target), asked).href]),
  )
}

for (const list of listNames) {
  t.test(`${list}: first, prev, next, last; no next on the last page (contract 23)`, async (t) => {
    const { token, connection } = await addCaller(db)
    await lists[list].add(db, connection, ...Array.from({ length: 5 }, () => ({})))
    const rels = async (query: string) => {
      const answer = await get(connection[list] + query, { token })
      const found = Object.entries(targets(t, answer.headers.get('link'), url + connection[list]))
      return found.map(([rel, target]) => `${rel} ${new URL(target).searchParams.get('page')}`)
    }
    t.strictSame(await rels(''), ['first 0', 'last 0'])
    t.strictSame(await rels('?limit=5'), ['first 0', 'last 0'])
    t.strictSame(await rels('?limit=2'), ['first 0', 'next 1', 'last 2'])
    t.strictSame(await rels('?limit=2&page=1'), ['first 0', 'prev 0', 'next 2', 'last 2'])
    t.strictSame(await rels('?limit=2&page=2'), ['first 0', 'prev 1', 'last 2'])
    t.strictSame(await rels('?limit=2&page=9'), ['first 0', 'prev 2', 'last 2'], 'past the end')
    t.strictSame(await rels('?from=2030-01-01'), ['first 0', 'last 0'], 'nothing found')
    t.strictSame(await rels('?from=2030-01-01&page=3'), ['first 0', 'prev 0', 'last 0'])
  })

  t.test(`${list}: following next from first reads everything once (contract 23)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const ids = await lists[list].add(db, connection, ...Array.from({ length: 7 }, () => ({})))
    const seen: string[] = []
    const query = '?limit=3&from=2000-01-01&to=2030-12-31'
    for (let next: string | undefined = url + connection[list] + query; next; ) {
      const answer = await get(next.slice(url.length), { token })
      t.equal(answer.status, 200)
      const { items, totalItems } = answer.json()
      t.equal(totalItems, 7, 'the filter is kept')
      seen.push(...items.map((item: Record<string, string>) => item[lists[list].id]))
      next = targets(t, answer.headers.get('link'), next).next
    }
    t.strictSame(seen.toSorted(), ids.toSorted())
  })

  t.test(`${list}: Link does not repeat the connection's token (contract 21)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const link = String((await get(connection[list], { token })).headers.get('link'))
    t.notOk(link.includes(connection.token))
  })
}

t.test('Transfer orders have no pages and no Link (section 4.3)', async (t) => {
  const { token, connection } = await addCaller(db)
  t.equal((await get(connection.orders, { token })).headers.get('link'), null)
})
