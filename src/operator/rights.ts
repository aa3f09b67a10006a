import { readFile } from 'node:fs/promises'
import { CompiledQuery, type Kysely, sql } from 'kysely'
import { OperatorError } from '../operator-error.ts'
import { plannerSettings, requiredSettings } from '../postgres/statements.ts'
import type { Tables } from '../postgres/tables.ts'
import { isCitus } from './database.ts'

/** Finds the statements of rights.sql that this database needs. */
export async function neededRights(db: Kysely<Tables>): Promise<string[]> {
  return await find(db, 'needed')
}

/**
 * Runs the statements of rights.sql, all of them or none.
 * @throws OperatorError with statements for an administrator, if this role may not run them
 */
export async function prepareRights(
  db: Kysely<Tables>,
  onNotice: (sentence: string) => void,
): Promise<void> {
  const needed = await neededRights(db)
  const revokes = needed.some((statement) => statement.startsWith('revoke'))
  await db.transaction().execute(async (transaction) => {
    for (const statement of needed)
      await sql
        // Without the privilege, PostgreSQL may also only warn, and the role for the next statements is
        // undefined. Another run may create the role at this moment.
        .raw(`do $$ begin ${statement}; exception when insufficient_privilege or undefined_object
          or duplicate_object or unique_violation then null; end $$`)
        .execute(transaction)
    const left = await neededRights(transaction)
    if (left.length > 0)
      throw new OperatorError(
        'This role may not prepare the roles and rights that the service needs. Nothing was changed. ' +
          `An administrator must run these statements in this database. Then try again:\n${left.join(';\n')};`,
      )
    const foreign = revokes ? await find(transaction, 'foreign') : []
    if (foreign.length > 0)
      throw new OperatorError(
        'Other roles have created functions or operators in the schema public. Nothing was changed. Drop them, or ' +
          `move them to another schema, then try again: ${foreign.join(', ')}.`,
      )
  })
  if (revokes) onNotice('PUBLIC may no longer create objects in the schema public.')
}

/** @param wanted kind of the rows, which rights.sql explains */
async function find(db: Kysely<Tables>, wanted: 'needed' | 'foreign'): Promise<string[]> {
  const text = await readFile(new URL('rights.sql', import.meta.url), 'utf8')
  const planner = plannerSettings(!(await isCitus(db)))
  const settings = JSON.stringify({ ...requiredSettings, ...planner })
  const query = CompiledQuery.raw(text, [settings])
  const { rows } = await db.executeQuery<{ kind: string; statement: string }>(query)
  return rows.filter(({ kind }) => kind === wanted).map(({ statement }) => statement)
}
