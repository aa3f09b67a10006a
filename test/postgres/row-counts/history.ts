import { fc } from '../../support/random.ts'
import { anyStatement, type Statement, sweepingStatement, wideStatement } from './statements.ts'

/** Statements of one writer, in sequence; some form transactions. */
export type Work = Statement[]
/** Work of several writers at the same time. */
export type Step = Work[]

const command = (sql: string): Statement => ({ sql, touches: [] })
const alone = (statement: Statement): Work => [statement]
const rowsOf = (writer: number) => [0, 1, 2, 3, 4].map((id) => writer * 10 + id)

function transaction(writer: number): fc.Arbitrary<Work> {
  const statement = anyStatement(rowsOf(writer))
  const undone = fc
    .array(statement, { maxLength: 3 })
    .map((work) => [command('savepoint s'), ...work, command('rollback to s')])
  const parts = fc.array(fc.oneof(statement.map(alone), undone), { maxLength: 4 })
  return fc
    .tuple(parts, fc.constantFrom('commit', 'rollback'))
    .map(([work, end]) => [command('begin'), ...work.flat(), command(end)])
}

function work(writer: number): fc.Arbitrary<Work> {
  const statements = fc.array(anyStatement(rowsOf(writer)), { minLength: 1, maxLength: 3 })
  return fc.oneof(transaction(writer), statements)
}

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(work(0)) },
  { weight: 2, arbitrary: fc.tuple(sweepingStatement.map(alone)) },
  { weight: 2, arbitrary: fc.tuple(work(0), work(1), work(2)) },
  { weight: 1, arbitrary: fc.tuple(work(0), work(1), sweepingStatement.map(alone)) },
)

/** Any sequence of steps. */
export const history: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 1, maxLength: 12 })

const wide = (writer: number) =>
  fc.array(wideStatement(rowsOf(writer)), { minLength: 4, maxLength: 8 })

/** Writers whose statements change several connections, but never the same rows. */
export const wideWrites: fc.Arbitrary<Step> = fc.tuple(wide(0), wide(1), wide(2), wide(3))
