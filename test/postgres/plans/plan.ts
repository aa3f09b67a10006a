import type pg from 'pg'
import type { Statement } from '../../../src/postgres/statements.ts'

/** A node of a plan, as EXPLAIN (FORMAT JSON) tells it, with what the tests look at. */
export interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Index Cond'?: string
  'Actual Rows'?: number
  'Actual Loops'?: number
  Plans?: PlanNode[]
}

/**
 * The plan that a session of the service has for a statement it prepared.
 * @param values literals for its parameters, with which it is run; absent: it is only planned
 */
export async function explain(
  pool: pg.Pool,
  { text }: Statement,
  values?: string[],
): Promise<PlanNode> {
  const parameters = new Set(text.match(/\$\d+/g))
  const literals = values ?? Array.from(parameters, () => 'null')
  const options = values ? 'analyze, timing off, ' : ''
  const client = await pool.connect()
  try {
    await client.query(`prepare explained as ${text}`)
    const explained = `explain (${options}format json) execute explained (${literals})`
    const { rows } = await client.query(explained)
    return rows[0]['QUERY PLAN'][0].Plan
  } finally {
    await client.query('deallocate explained')
    client.release()
  }
}

/** The node and all below it. */
export function allNodes(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(allNodes)]
}

/** The table that a node reads, or the one of which it reads a partition (docs/partitions.sql). */
export function tableOf(node: PlanNode): string | undefined {
  return node['Relation Name']?.replace(/_\d+$/, '')
}

/** How many rows the statement read of a table. */
export function rowsRead(plan: PlanNode, table: string): number {
  return allNodes(plan)
    .filter((node) => tableOf(node) === table)
    .reduce((sum, node) => sum + (node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 0), 0)
}
