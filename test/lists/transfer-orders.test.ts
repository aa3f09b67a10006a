import t from 'tap'
import { addCaller, addConnection, addTransferOrders } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)

t.test('200: an array, empty where there is nothing (section 2.7)', async (t) => {
  const { token, connection } = await addCaller(db)
  const answer = await get(connection.orders, { token })
  t.equal(answer.text, '[]')
  t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
})

t.test('Only orders that the user completed, of this connection (contract 15)', async (t) => {
  const { appId, token, connection } = await addCaller(db)
  await addTransferOrders(
    db,
    connection,
    { name: 'completed' },
    { name: 'begun', completed_at: null },
  )
  await addTransferOrders(db, await addConnection(db, appId), { name: 'of another connection' })
  const names = async () =>
    (await get(connection.orders, { token })).json().map((order: { name: string }) => order.name)
  t.strictSame(await names(), ['completed'])

  const set = (completed_at: Date | null, name: string) =>
    db
      .updateTable('assets_transfer_order')
      .set({ completed_at })
      .where('connection_id', '=', connection.id)
      .where('name', '=', name)
      .execute()
  await set(new Date('2025-06-01T00:00:00Z'), 'begun')
  t.strictSame(await names(), ['begun', 'completed'], 'from the moment of its completion')
  await set(null, 'completed')
  t.strictSame(await names(), ['begun'])
})

t.test('Newest completion first, then by id, both descending (contract 8)', async (t) => {
  const { token, connection } = await addCaller(db)
  const expected = [
    ['2025-01-02T00:00:00.000002Z', '00000000-0000-4000-8000-000000000000'],
    ['2025-01-02T00:00:00.000001Z', 'ffffffff-ffff-4fff-bfff-ffffffffffff'],
    ['2025-01-02T01:00:00.000000+02:00', 'f0000000-0000-4000-8000-000000000000'],
    ['2025-01-01T23:00:00.000000Z', 'a0000000-0000-4000-8000-000000000000'],
    ['2025-01-01T23:00:00.000000Z', '9fffffff-ffff-4fff-bfff-ffffffffffff'],
    ['1969-12-31T23:59:59.999999Z', 'ffffffff-ffff-4fff-bfff-fffffffffffe'],
  ] as const
  const orders = expected.map(([completed_at, id]) => ({ completed_at, id }) as object)
  await addTransferOrders(db, connection, ...orders.toReversed())
  const answer = (await get(connection.orders, { token })).json()
  t.strictSame(
    answer.map(({ id }: { id: string }) => id),
    expected.map(([, id]) => id),
  )
})

t.test('All of them in one answer, without limit or page (section 4.3)', async (t) => {
  const { token, connection } = await addCaller(db)
  await addTransferOrders(db, connection, ...Array.from({ length: 2_500 }, () => ({})))
  t.equal((await get(connection.orders, { token })).json().length, 2_500)
})
