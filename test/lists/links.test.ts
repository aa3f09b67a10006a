import t, { type Test } from 'tap'
import { addCaller, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get, url } = await startService(t)

/** Targets of a Link header by rel, resolved against the request's URL. */
function targets(t: Test, link: string | null, requestUrl: string): Record<string, string> {
  const all = [...String(link).matchAll(/<([^>]*)>; rel="([a-z]+)"(?:, |$)/g)]
  t.equal(all.map(([whole]) => whole).join(''), link, 'the header is nothing but links')
  return Object.fromEntries(
    all.map(([, target, rel]) => [rel, new URL(String(target), requestUrl).href]),
  )
}

for (const list of listNames) {
  t.test(
    `${list}: Link has first, prev, next and last; the last page has no next (contract 23)`,
    async (t) => {
      const { token, connection } = await addCaller(db)
      await lists[list].add(db, connection, ...Array.from({ length: 5 }, () => ({})))
      const rels = async (query: string) => {
        const response = await get(connection[list] + query, { token })
        const found = Object.entries(
          targets(t, response.headers.get('link'), url + connection[list]),
        )
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
    },
  )

  t.test(`${list}: the next links lead through every row once (contract 23)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const ids = await lists[list].add(db, connection, ...Array.from({ length: 7 }, () => ({})))
    const outside = ['1999-12-31', '2031-01-01'].map((day) => ({ operation_date_day: day }))
    await lists[list].add(db, connection, ...outside)
    const seen: string[] = []
    const query = '?limit=3&from=2000-01-01&to=2030-12-31'
    for (let next: string | undefined = url + connection[list] + query; next; ) {
      const response = await get(next.slice(url.length), { token })
      t.equal(response.status, 200)
      const { items, totalItems } = response.json()
      t.equal(totalItems, 7, 'the filter is kept')
      seen.push(...items.map((item: Record<string, string>) => item[lists[list].id]))
      next = targets(t, response.headers.get('link'), next).next
    }
    t.strictSame(seen.toSorted(), ids.toSorted())
  })

  t.test(`${list}: Link does not contain the connection's token (contract 21)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const link = String((await get(connection[list], { token })).headers.get('link'))
    t.notOk(link.includes(connection.token))
  })
}

t.test('orders: no pages and no Link (section 4.3)', async (t) => {
  const { token, connection } = await addCaller(db)
  t.equal((await get(connection.orders, { token })).headers.get('link'), null)
})
