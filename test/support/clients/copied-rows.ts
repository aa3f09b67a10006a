import { addCaller, addTransferOrders, type Caller, listNames, lists } from '../rows.ts'
import type { Service } from '../service.ts'

/** Adds a connection with rows in each list. Their texts and digits show what a database loses. */
export async function callerWithRows({ db }: Service, count: number): Promise<Caller> {
  const caller = await addCaller(db)
  const rows = Array.from({ length: count }, (_, index) => ({
    amount: `${index}.10`,
    description: 'ñ "€" \\ 🗾',
  }))
  for (const list of listNames) await lists[list].add(db, caller.connection, ...rows)
  await addTransferOrders(db, caller.connection, { titles: '0.10', total: true })
  return caller
}

/** Adds, changes and removes a row of each list. */
export async function changeRows({ db }: Service, caller: Caller): Promise<void> {
  for (const list of listNames) {
    const { table, idColumn } = lists[list]
    const amount = `${'9'.repeat(38)}.${'0'.repeat(37)}1`
    const added = [{ amount }, {}, {}]
    const [first = '', second = ''] = await lists[list].add(db, caller.connection, ...added)
    const id = idColumn as never
    await db
      .updateTable(table)
      .set({ amount: '-5.00' })
      .where(id, '=', first as never)
      .execute()
    await db
      .deleteFrom(table)
      .where(id, '=', second as never)
      .execute()
  }
}
