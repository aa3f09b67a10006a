import t from 'tap'
import { addCaller, addConnection, addTransferOrders } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)

t.test('200: an array, empty without orders (section 2.7)', async (t) => {
  const { token, connection } = await addCaller(db)
  const response = await get(connection.orders, { token })
  t.equal(response.text, '[]')
  t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
})

t.test('200: only completed orders of the connection (contract 15)', async (t) => {
  const { appId, token, connection } = await addCaller(db)
  await addTransferOrders(
    db,
    connection,
    { name: 'completed' },
    { name: 'pending', completed_at: null },
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
  await set(new Date('2025-06-01T00:00:00Z'), 'pending')
  t.strictSame(await names(), ['pending', 'completed'], 'as soon as it is completed')
  await set(null, 'completed')
  t.strictSame(await names(), ['pending'])
})

t.test('200: ordered by completion and id, descending (contract 8)', async (t) => {
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
  const response = (await get(connection.orders, { token })).json()
  t.strictSame(
    response.map(({ id }: { id: string }) => id),
    expected.map(([, id]) => id),
  )
})

t.test('200: all orders in one response (section 4.3)', async (t) => {
  const { token, connection } = await addCaller(db)
  await addTransferOrders(db, connection, ...Array.from({ length: 2_500 }, () => ({})))
  t.equal((await get(connection.orders, { token })).json().length, 2_500)
})
