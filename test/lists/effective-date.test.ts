import t, { type Test } from 'tap'
import { addCaller, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)

/** Returns a function that lists the descriptions of the rows that match a query. */
function descriptionsOf(t: Test, path: string, token: string) {
  return async (query: string): Promise<string> => {
    const { items, totalItems } = (await get(`${path}?${query}`, { token })).json()
    t.equal(totalItems, items.length, 'the total counts the matching rows')
    return items.map((item: Record<string, string>) => item.description).join(' ')
  }
}

for (const list of listNames) {
  t.test(`${list}: from and to are inclusive, and each is optional (contract 3)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const days = ['2024-02-28', '2024-02-29', '2024-03-01']
    const rows = days.map((day) => ({ operation_date_day: day, description: day }))
    await lists[list].add(db, connection, ...rows)
    const find = descriptionsOf(t, connection[list], token)
    t.equal(await find(''), '2024-03-01 2024-02-29 2024-02-28')
    t.equal(await find('from=2024-02-29'), '2024-03-01 2024-02-29')
    t.equal(await find('to=2024-02-29'), '2024-02-29 2024-02-28')
    t.equal(await find('from=2024-02-29&to=2024-02-29'), '2024-02-29')
    t.equal(await find('from=2024-02-28&to=2024-03-01'), '2024-03-01 2024-02-29 2024-02-28')
    t.equal(await find('from=2024-03-02'), '')
    t.equal(await find('to=2024-02-27'), '')
  })

  t.test(`${list}: the operation date counts, else the value date (contract 4)`, async (t) => {
    const { token, connection } = await addCaller(db)
    await lists[list].add(
      db,
      connection,
      { operation_date_day: '2025-01-10', value_date_day: '2025-03-10', description: 'both' },
      { operation_date_day: '2025-01-11', description: 'operation' },
      { value_date_day: '2025-01-12', description: 'value' },
    )
    const find = descriptionsOf(t, connection[list], token)
    t.equal(await find(''), 'value operation both')
    t.equal(await find('from=2025-01-10&to=2025-01-10'), 'both', 'its value date does not count')
    t.equal(await find('from=2025-03-10&to=2025-03-10'), '')
    t.equal(await find('from=2025-01-12'), 'value', 'every row has an effective date')
  })

  t.test(`${list}: the original dates and all hours do not count (contract 4)`, async (t) => {
    const { token, connection } = await addCaller(db)
    await lists[list].add(db, connection, {
      operation_date_day: '2025-01-10',
      operation_date_hour: '23:59:59',
      original_operation_date_day: '2025-01-11',
      original_operation_date_hour: '00:59:59',
      original_operation_date_tz: 'Pacific/Kiritimati',
      original_value_date_day: '2025-01-12',
      value_date_hour: '24:00:00',
      description: 'row',
    })
    const find = descriptionsOf(t, connection[list], token)
    t.equal(await find('from=2025-01-10&to=2025-01-10'), 'row')
    t.equal(await find('from=2025-01-11'), '')
  })

  t.test(`${list}: years 0001 and 9999 are valid (contract 3)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const days = ['0001-01-01', '9999-12-31']
    const rows = days.map((day) => ({ operation_date_day: day, description: day }))
    await lists[list].add(db, connection, ...rows)
    const find = descriptionsOf(t, connection[list], token)
    t.equal(await find('from=0001-01-01&to=9999-12-31'), '9999-12-31 0001-01-01')
    t.equal(await find('from=9999-12-31'), '9999-12-31')
    t.equal(await find('to=0001-01-01'), '0001-01-01')
  })
}
