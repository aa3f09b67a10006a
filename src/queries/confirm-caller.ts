import { sql } from 'kysely'
import { compile } from '../database/builder.ts'
import type { Database } from '../database/database.ts'
import { type Caller, callerParameter, callingApp, forEachCaller, kindOf } from './calling-app.ts'
import { TokenExpired, TokenUnknown } from './refusals.ts'

const statements = forEachCaller((kind) => compile(`caller by ${kind}`, sql`${callingApp(kind)}`))

/**
 * Whether the caller is who it says, for a request that is at fault in other ways: those are not told to
 * a stranger (contract 1).
 * @returns the id of the app
 * @throws TokenUnknown or TokenExpired
 */
export async function confirmCaller(db: Database, caller: Caller): Promise<string> {
  const rows = await db.read(statements[kindOf(caller)], [callerParameter(caller)])
  const [appId, expired] = rows.shift() ?? []
  if (typeof appId !== 'string') throw new TokenUnknown()
  if (expired === 't') throw new TokenExpired()
  return appId
}
