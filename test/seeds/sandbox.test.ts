import { readFile } from 'node:fs/promises'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { addresses } from '../support/rows.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { type Figures, type Holding, type Row, walk, yearsOf } from './calculator.ts'

interface State {
  day: string
  afterDays: number
  positions: Holding[]
  years: Record<string, Figures>
  firstGap?: Omit<Holding, 'titles'> & { day: string; expected: string; found: string }
}

const file = new URL('../../seeds/expected.json', import.meta.url)
const expected = JSON.parse(await readFile(file, 'utf8')) as Record<string, State[]>
const { get } = await startSeededService(t)

/** Reads all rows of a connection, with decimals as text. */
async function rowsOf(token: string) {
  const headers = { accept: 'application/json;IEEE754Compatible=true' }
  const { portfolio, account } = addresses(token)
  const [transactions, movements] = await Promise.all(
    [portfolio, account].map(async (path) => {
      const response = await get(`${path}?limit=10000`, { token: DEMO.wealth.token, headers })
      return response.json().items as Row[]
    }),
  )
  return { portfolio: transactions ?? [], account: movements ?? [] }
}

for (const [token, states] of Object.entries(expected)) {
  t.test(`${token}: the positions, gains and dividends of expected.json`, async (t) => {
    const [state] = states
    const { portfolio, account } = await rowsOf(token)
    const { holdings, statements, negative } = walk(portfolio)
    t.strictSame(holdings, state?.positions)
    t.strictSame(yearsOf(portfolio, account), state?.years)
    t.strictSame(negative, [])
    const [gap] = statements.filter(({ stated, computed }) => !stated.equals(computed))
    const firstGap = gap && {
      portfolioId: gap.row.portfolioId,
      investment: gap.row.investment,
      day: gap.row.operationDateDay,
      expected: gap.stated.decimal,
      found: gap.computed.decimal,
    }
    t.strictSame(firstGap, state?.firstGap)
  })
}
