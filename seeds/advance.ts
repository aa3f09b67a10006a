import { type Kysely, type RawBuilder, sql } from 'kysely'
import { OperatorError } from '../src/operator-error.ts'
import type { Tables } from '../src/postgres/tables.ts'
import { connectionKey, tokenHash } from '../src/postgres/tokens.ts'
import { instruments } from './instruments.ts'
import { idOf } from './random.ts'
import { decimalText } from './rows.ts'
import { DEMO } from './sample-data.ts'

/** `booked`: type of a row that the next day corrects and the day after cancels. `known`: type of a classified row. */
const lists = [
  { table: 'portfolio_transaction', key: 'transaction_id', booked: 'BUY', known: 'SELL' },
  { table: 'account_transaction', key: 'movement_id', booked: 'FEES', known: 'INTEREST' },
] as const

/**
 * Moves the large connection of the sample data by some days, in one transaction. On each day, both of
 * its lists get new rows. The newest UNKNOWN gets a type, one amount is corrected, one row is cancelled.
 * @returns the new last day, and the numbers of rows
 * @throws OperatorError if the database does not have this connection
 */
export async function advance(db: Kysely<Tables>, days: number) {
  const { app, connections } = DEMO.wealth
  const hash = tokenHash(connections.large.token)
  return await db.transaction().execute(async (transaction) => {
    const connection = await transaction
      .selectFrom('connection')
      .innerJoin('app', 'app.id', 'connection.app_id')
      .select('connection.id')
      .where('connection.id', '=', connectionKey(hash))
      .where('token_hash', '=', hash)
      .where('app.name', '=', app)
      .forNoKeyUpdate('connection')
      .executeTakeFirst()
    if (!connection) throw new OperatorError('The database does not have the sample data.')
    await sql`update connection set refreshed_at = now() where id = ${connection.id}`.execute(
      transaction,
    )
    const counts = { added: 0, corrected: 0, cancelled: 0 }
    let day = await lastDay(transaction, connection.id)
    for (let left = days; left > 0; left -= 1) {
      day = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10)
      for (const list of lists) {
        const { corrected, cancelled } = await changeRows(transaction, connection.id, list)
        counts.corrected += corrected
        counts.cancelled += cancelled
      }
      counts.added += await addRows(transaction, connection.id, day)
    }
    return { day, ...counts }
  })
}

async function lastDay(db: Kysely<Tables>, id: string): Promise<string> {
  const { rows } = await sql<{ day: string | null }>`
    select max(effective_day)::text as day from portfolio_transaction where connection_id = ${id}`.execute(
    db,
  )
  return rows[0]?.day ?? '2025-12-31'
}

async function changeRows(db: Kysely<Tables>, id: string, list: (typeof lists)[number]) {
  const [table, key] = [sql.table(list.table), sql.ref(list.key)]
  const newest = (type: string, offset: number) => sql`
    where connection_id = ${id} and ${key} = (
      select ${key} from ${table} where connection_id = ${id} and type = ${type}
      order by effective_day desc, ${key} offset ${offset} limit 1)`
  const { booked, known } = list
  const run = async (statement: RawBuilder<unknown>) =>
    Number((await statement.execute(db)).numAffectedRows ?? 0)
  const classified = await run(sql`update ${table} set type = ${known} ${newest('UNKNOWN', 0)}`)
  const cancelled = await run(sql`delete from ${table} ${newest(booked, 1)}`)
  const corrected = await run(sql`update ${table} set amount = amount + 0.01 ${newest(booked, 0)}`)
  return { corrected: classified + corrected, cancelled }
}

async function addRows(db: Kysely<Tables>, connection_id: string, day: string) {
  const number = BigInt(Date.parse(day) / 86_400_000)
  const instrument = instruments[Number(number % BigInt(instruments.length))]
  const base = {
    connection_id,
    currency: instrument?.currency ?? null,
    operation_date_day: day,
    value_date_day: day,
    investment: instrument?.id ?? null,
  }
  const cash = decimalText(1000n + (number % 97n), 2)
  const transaction = (type: 'BUY' | 'DIVIDENDS' | 'UNKNOWN', amount: string | null) => ({
    ...base,
    transaction_id: idOf(`large ${day} ${type}`),
    portfolio_id: idOf('large portfolio 0'),
    type,
    amount,
  })
  const movement = (type: 'FEES' | 'DIVIDENDS' | 'UNKNOWN', amount: string) => ({
    ...base,
    movement_id: idOf(`large ${day} cash ${type}`),
    account_id: idOf('large account'),
    type,
    amount,
  })
  const trade = decimalText(number * 12_345n, 5)
  await db
    .insertInto('portfolio_transaction')
    .values([
      transaction('BUY', trade),
      transaction('DIVIDENDS', cash),
      transaction('UNKNOWN', null),
    ])
    .execute()
  await db
    .insertInto('account_transaction')
    .values([movement('FEES', '-4.95'), movement('DIVIDENDS', cash), movement('UNKNOWN', '0.01')])
    .execute()
  return 6
}
