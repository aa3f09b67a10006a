import type pg from 'pg'
import type { CompiledStatement } from '../../../src/postgres/statements.ts'
import type { Values } from '../../../src/queries/parameters.ts'
import { literalsOf } from '../../support/statements.ts'

/** Node of a plan of EXPLAIN (FORMAT JSON), with the members that the tests read. */
export interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  Alias?: string
  'Index Cond'?: string
  'Actual Rows'?: number
  'Actual Loops'?: number
  'Rows Removed by Filter'?: number
  Plans?: PlanNode[]
}

/**
 * Returns the plan of a prepared statement.
 * @param values of its parameters: the statement also runs. Without them, PostgreSQL only plans it.
 */
export async function explain(
  pool: pg.Pool,
  statement: CompiledStatement,
  values?: Values,
): Promise<PlanNode> {
  const nulls = statement.parameters.map(() => 'null').join(', ')
  const literals = values ? literalsOf(statement, values) : nulls
  const options = values ? 'analyze, timing off, ' : ''
  const client = await pool.connect()
  try {
    await client.query(`prepare explained as ${statement.text}`)
    const explained = `explain (${options}format json) execute explained (${literals})`
    const { rows } = await client.query(explained)
    return rows[0]['QUERY PLAN'][0].Plan
  } finally {
    await client.query('deallocate explained')
    client.release()
  }
}

/** Returns the node and all nodes below it. */
export function allNodes(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(allNodes)]
}

/** Returns the table that a node reads. For a partition (docs/reference/partitions.sql), returns its table. */
export function tableOf(node: PlanNode): string | undefined {
  return node['Relation Name']?.replace(/_\d+$/, '')
}

/** Returns the number of rows that a node read, with those that it did not return. */
export function rowsOfNode(node: PlanNode): number {
  const read = (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)
  return read * (node['Actual Loops'] ?? 0)
}

/** Returns the number of rows that the statement read from a table. */
export function rowsRead(plan: PlanNode, table: string, type: string): number {
  return allNodes(plan)
    .filter((node) => tableOf(node) === table && node['Node Type'] === type)
    .reduce((sum, node) => sum + rowsOfNode(node), 0)
}
