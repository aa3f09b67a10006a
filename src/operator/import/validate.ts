import type pg from 'pg'
import { ImportRejected, SHOWN_FAULTS } from '../errors.ts'
import type { Kind } from './import-types.ts'
import type { FaultAtLine, Staged } from './staging.ts'

/**
 * Lets the staged rows pass, unless rows were at fault or two of them are the same one.
 * @throws ImportRejected with the first faults, in the order of the lines
 */
export async function judge(client: pg.ClientBase, kind: Kind, staged: Staged): Promise<void> {
  const duplicates = await findDuplicates(client, kind, staged)
  const total = staged.faults.total + duplicates.total
  if (total === 0) return
  const first = [...staged.faults.first, ...duplicates.first]
    .sort((a, b) => a.line - b.line)
    .slice(0, SHOWN_FAULTS)
    .map(({ line, field, reason }) => ({ ...staged.locate(line), ...(field && { field }), reason }))
  throw new ImportRejected(first, total)
}

/** PostgreSQL finds them: an id may come again a gigabyte later. */
async function findDuplicates(client: pg.ClientBase, { key }: Kind, staged: Staged) {
  const { rows } = await client.query<{ line: string; first: string; total: string }>(`
    with repeated as (
      select ${key.column} as key, min(line) as first, sum(count(*) - 1) over () as total
      from import_row group by ${key.column} having count(*) > 1)
    select i.line, r.first, r.total
    from import_row i join repeated r on r.key = i.${key.column}
    where i.line > r.first
    order by i.line limit ${SHOWN_FAULTS}`)
  const first = rows.map((row): FaultAtLine => {
    const { file, line } = staged.locate(Number(row.first))
    const reason = `the same row was on line ${line} of ${file} already`
    return { line: Number(row.line), field: key.field, reason }
  })
  return { first, total: Number(rows[0]?.total ?? 0) }
}
