/** node:http and postgres.js, with the statements of the service and the same bytes. */
import postgres from 'postgres'
import { plannerSettings } from '../../src/postgres/statements.ts'
import { type Row, serveMinimal } from '../servers/minimal-service.ts'

/** Passes a type as PostgreSQL writes it. */
const asIs = (oid: number) => ({
  to: oid,
  from: [oid],
  serialize: (value: unknown) => value,
  parse: (text: string) => text,
})
const BYTEA = 17
const DATE = 1082
const toHex = (value: unknown) => (Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : value)

const sql = postgres(process.env.DATABASE_URL ?? '', {
  max: 10,
  fetch_types: false,
  connection: { default_transaction_read_only: true, ...plannerSettings(true) },
  types: {
    // postgres.js would make an object of each day, and knows no infinity.
    date: asIs(DATE),
    bytea: { ...asIs(BYTEA), serialize: toHex },
  },
})

// postgres.js gives the statement a name, prepares it once on each connection, and sends several on one connection.
serveMinimal(
  async (text, values) =>
    (await sql.unsafe(text, values as string[], { prepare: true }).values()) as unknown as Row[],
)
