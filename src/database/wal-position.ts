import { sql } from 'kysely'
import { build, compile } from './builder.ts'
import type { Host } from './host.ts'

const position = compile(
  'position in the log',
  sql`${build.selectNoFrom([
    sql`pg_is_in_recovery()`.as('standby'),
    sql`case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end`.as(
      'reached',
    ),
  ])}`,
)

/** How far a server has come in the write-ahead log. */
export interface WalPosition {
  /** Whether it replays another server's log. */
  standby: boolean
  /** Bytes since the beginning of the log, undefined where the server does not tell. */
  reached: bigint | undefined
}

/** @throws DatabaseUnavailable */
export async function walPosition(host: Host): Promise<WalPosition> {
  const [standby, reached] = (await host.probe(position, [])).shift() ?? []
  return { standby: standby === 't', reached: reached ? bytesOf(reached) : undefined }
}

/** From PostgreSQL's notation, two hexadecimal words: `16/B374D848`. */
function bytesOf(position: string): bigint {
  const [high, low] = position.split('/')
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`)
}
