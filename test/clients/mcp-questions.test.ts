/**
 * Twenty questions of a holder, as an assistant asks them: calls, tokens, and each figure compared with the exported
 * rows, which are added as BigInt.
 */
import t, { type Test } from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { DEMO_TOKEN } from '../support/seeded-service.ts'
import { withLengths } from '../support/with-lengths.ts'
import {
  type Arguments,
  dayOf,
  type ExportedRow,
  exported,
  host,
  type Result,
  service,
  startHostService,
  sums,
  tokens,
  units,
} from './mcp-host.ts'

const { EFFECTS } = await import('../../clients/typescript/src/rows.ts')
await startHostService(t)

const MAX_TOKENS = 8000
const connections = {
  depot: DEMO.wealth.connections.large.token,
  small: DEMO.wealth.connections.small.token,
  fund: DEMO.wealth.connections.gap.token,
}
type Connection = keyof typeof connections

const portfolio = await exported(connections.depot, 'portfolio')
const account = await exported(connections.depot, 'account')
const year = dayOf(portfolio[0] ?? {}).slice(0, 4)

const isOfYear = (row: ExportedRow) => dayOf(row).startsWith(year)
const hasType = (row: ExportedRow, ...types: string[]) => types.includes(String(row.type))
const currencyOf = (row: ExportedRow) => row.currency ?? ''
const shortOf = (id: string | null | undefined) => (id ?? '').slice(0, 8)
const ofYear = { from: `${year}-01-01`, to: `${year}-12-31` }
const maximum = (values: bigint[]) => values.reduce((a, b) => (a > b ? a : b))

/** Sums of a table by the keys of each line, to compare them with `sums`. */
function sumsOf(rows: Record<string, string>[], field: string, ...keys: string[]) {
  const known = rows.filter((row) => row[field])
  return Object.fromEntries(
    known.map((row) => [keys.map((key) => row[key]).join(), units(row[field])]),
  )
}

/** Shares by portfolio and investment: the sum of all changes until a day. */
function sharesOf(rows: ExportedRow[], at = '9999-12-31') {
  const changes = rows.flatMap((row) => {
    const effect = EFFECTS[row.type as keyof typeof EFFECTS]
    if ((effect !== '+' && effect !== '-') || dayOf(row) > at) return []
    return [{ ...row, titles: `${effect === '+' ? '' : '-'}${row.titles}` }]
  })
  return sums(changes, 'titles', (row) => `${shortOf(row.portfolioId)},${shortOf(row.investment)}`)
}

/** Names of investments in the transfer orders of a connection. */
async function namesOf(connection: Connection): Promise<Map<string, string>> {
  const path = `/api/v1/queries/connections/${connections[connection]}/assets-transfer`
  const { text } = await service.get(path, { token: DEMO_TOKEN })
  const orders: { investment: string; name: string }[] = JSON.parse(text)
  return new Map(orders.map(({ investment, name }) => [shortOf(investment), name]))
}

const table: string[] = []

/** Asks a question with any calls. `answer` returns the figure for the table. */
function question(
  text: string,
  answer: (
    ask: (tool: string, values: Arguments) => Promise<Result>,
    t: Test,
  ) => Promise<string | undefined>,
): void {
  t.test(text, async (t) => {
    const { ask } = await host(t, connections)
    let calls = 0
    let size = 0
    const figure = await answer(async (tool, values) => {
      const result = await ask(tool, { connection: 'depot', ...values })
      calls += 1
      size += tokens(result.text)
      t.ok(tokens(result.text) <= MAX_TOKENS, tool)
      return result
    }, t)
    table.push(`| ${text} | ${calls} | ${size} | ${figure} |`)
  })
}

const RETENTIONS = ['DIVIDEND_RETENTION', 'DIVIDEND_RETENTION_REFUND']

question('What did I earn in dividends, net of tax?', async (ask, t) => {
  const types = ['DIVIDENDS', ...RETENTIONS]
  const { rows, facts } = await ask('summarize', { list: 'account', ...ofYear, types, by: [] })
  const wanted = account.filter((row) => isOfYear(row) && hasType(row, ...types))
  t.ok(wanted.length > 0)
  t.strictSame(sumsOf(rows, 'amount', 'currency'), sums(wanted, 'amount', currencyOf))
  t.match(facts, { connection: 'depot', list: 'account', rows: wanted.length, truncated: false })
  return rows.map(({ amount, currency }) => `${amount} ${currency}`).join(', ')
})

question('Which fees did I pay this year, and where do they stand?', async (ask, t) => {
  const types = ['FEES', 'FEES_REFUND']
  const values = { list: 'account', ...ofYear, types, by: ['type'] }
  const inRows = await ask('summarize', values)
  const inColumn = await ask('summarize', { list: 'portfolio', ...ofYear, by: [] })
  const fees = account.filter((row) => isOfYear(row) && hasType(row, ...types))
  t.ok(fees.length > 0)
  const trades = portfolio.filter(isOfYear)
  t.strictSame(
    sumsOf(inRows.rows, 'amount', 'type', 'currency'),
    sums(fees, 'amount', (row) => `${row.type},${currencyOf(row)}`),
  )
  t.strictSame(
    sumsOf(inColumn.rows, 'commission', 'currency'),
    sums(trades, 'commission', currencyOf),
  )
  for (const { facts } of [inRows, inColumn])
    t.match(
      String(facts.notes),
      /rows of FEES \(account list\).*commission \(both lists\).*never add/,
    )
  const paid = inRows.rows.map(({ amount, currency }) => `${amount} ${currency}`)
  const charged = inColumn.rows.map(({ commission, currency }) => `${commission} ${currency}`)
  return `rows ${paid.join(', ')}; commission ${charged.join(', ')}`
})

question('Which tax was withheld from my dividends, and where does it stand?', async (ask, t) => {
  const paid = await ask('summarize', { list: 'portfolio', types: ['DIVIDENDS'], by: [] })
  const arrived = await ask('summarize', {
    ...{ list: 'account', types: ['DIVIDENDS', 'DIVIDEND_RETENTION', 'TAXES'] },
    by: ['type'],
  })
  const dividends = portfolio.filter((row) => hasType(row, 'DIVIDENDS'))
  t.strictSame(sumsOf(paid.rows, 'taxes', 'currency'), sums(dividends, 'taxes', currencyOf))
  const cash = account.filter((row) => hasType(row, 'DIVIDENDS', 'DIVIDEND_RETENTION', 'TAXES'))
  t.strictSame(
    sumsOf(arrived.rows, 'amount', 'type', 'currency'),
    sums(cash, 'amount', (row) => `${row.type},${currencyOf(row)}`),
  )
  for (const { facts } of [paid, arrived])
    t.match(
      String(facts.notes),
      /taxes \(both lists\).*retentionFrom.*DIVIDEND_RETENTION and TAXES/,
    )
  return `taxes ${paid.rows.map(({ taxes, currency }) => `${taxes} ${currency}`).join(', ')}`
})

question('What did I sell, and for how much?', async (ask, t) => {
  const values = { list: 'portfolio', ...ofYear, types: ['SELL'], by: ['investment', 'type'] }
  const { rows, facts } = await ask('summarize', values)
  const sold = portfolio.filter((row) => isOfYear(row) && hasType(row, 'SELL'))
  t.ok(sold.length > 0)
  for (const field of ['amount', 'titles', 'commission', 'taxes'])
    t.strictSame(
      sumsOf(rows, field, 'investment', 'currency'),
      sums(sold, field, (row) => `${shortOf(row.investment)},${currencyOf(row)}`),
      field,
    )
  t.equal(facts.rows, sold.length)
  return `${facts.rows} sales of ${facts.groups} groups`
})

question('What gain did I realise?', async (ask, t) => {
  const { facts } = await ask('summarize', { list: 'portfolio', types: ['SELL'], by: ['year'] })
  t.match(String(facts.notes), /proceeds, not gains: realised gains cannot be told/)
  return 'cannot be told'
})

question('What changed since last week?', async (ask, t) => {
  const newest = new Date(`${dayOf(portfolio[0] ?? {})}T00:00:00Z`)
  const from = new Date(newest.getTime() - 7 * 86_400_000).toISOString().slice(0, 10)
  const { facts } = await ask('list_transactions', { list: 'portfolio', from, limit: 5 })
  t.match(String(facts.notes), /this is not what changed since then/)
  t.equal(facts.total, portfolio.filter((row) => dayOf(row) >= from).length)
  const invented = await ask('list_transactions', { list: 'portfolio', changedSince: from })
  t.match(invented.text, /no argument has the name \["changedSince"\]/)
  return 'cannot be told'
})

question('What was my largest purchase?', async (ask, t) => {
  const bought = portfolio.filter((row) => hasType(row, 'BUY') && row.amount !== null)
  const currencies = new Set(bought.map(currencyOf))
  const values = { list: 'portfolio', types: ['BUY'], orderBy: 'amount', limit: currencies.size }
  const { rows, facts } = await ask('list_transactions', values)
  const largest = [...currencies].map((currency) => {
    const sizes = bought.filter((row) => currencyOf(row) === currency)
    return [currency, maximum(sizes.map((row) => units(row.amount)))]
  })
  t.strictSame(sumsOf(rows, 'amount', 'currency'), Object.fromEntries(largest))
  t.match(String(facts.notes), /Amounts of different currencies do not compare/)
  return rows.map(({ amount, currency, day }) => `${amount} ${currency} on ${day}`).join(', ')
})

question('How many shares of one investment did I have on a day?', async (ask, t) => {
  const at = `${Number(year) - 1}-06-30`
  const shares = sharesOf(portfolio, at)
  const [key = ''] = Object.entries(shares).find(([, value]) => value > 0n) ?? []
  const investment = key.split(',')[1] ?? ''
  const { rows } = await ask('check_positions', { investment, at })
  t.ok(rows.length > 0)
  for (const row of rows)
    if (row.shares) t.equal(units(row.shares), shares[`${row.portfolio},${row.investment}`] ?? 0n)
  t.ok(rows.every((row) => row.investment === investment))
  return rows.map((row) => `${row.shares} (${row.status})`).join(', ')
})

question('Which investment paid the most, by its name?', async (ask, t) => {
  const values = { list: 'portfolio', types: ['DIVIDENDS', 'COUPON'], by: ['investment'] }
  const { rows } = await ask('summarize', { connection: 'small', ...values })
  const all = await exported(connections.small, 'portfolio')
  const paid = all.filter((row) => hasType(row, 'DIVIDENDS', 'COUPON'))
  const wanted = sums(paid, 'amount', (row) => shortOf(row.investment))
  const found = sumsOf(rows, 'amount', 'investment')
  t.strictSame(found, wanted)
  const best = rows.find((row) => units(row.amount) === maximum(Object.values(wanted)))
  const names = await namesOf('small')
  t.ok(best?.name)
  t.equal(best?.name, names.get(String(best?.investment)))
  return `${best?.name}: ${best?.amount} ${best?.currency}`
})

question('What is not known about my transactions?', async (ask, t) => {
  const { facts } = await ask('describe_connection', {})
  const counts: string[] = []
  for (const [list, rows] of Object.entries({ portfolio, account })) {
    const unknown = facts[list].rowsWithout
    for (const field of ['amount', 'commission', 'taxes', 'investment']) {
      const wanted = rows.filter((row) => row[field] === null).length
      t.equal(unknown[field] ?? 0, wanted, `${list}, ${field}`)
    }
    counts.push(`${list} ${JSON.stringify(unknown)}`)
  }
  return counts.join('; ')
})

question('What did I get in dividends at both of my banks?', async (ask, t) => {
  const figures: string[] = []
  for (const connection of ['depot', 'small'] as const) {
    const values = { connection, list: 'account', types: ['DIVIDENDS'], by: [] }
    const { rows, facts } = await ask('summarize', values)
    t.equal(facts.connection, connection)
    t.match(String(facts.notes), /Sums of several connections are not added: state each one/)
    const all = await exported(connections[connection], 'account')
    const wanted = all.filter((row) => hasType(row, 'DIVIDENDS'))
    t.strictSame(sumsOf(rows, 'amount', 'currency'), sums(wanted, 'amount', currencyOf))
    figures.push(rows.map(({ amount, currency }) => `${amount} ${currency}`).join(', '))
  }
  return figures.join(' and ')
})

question('How much did I pay in and out, by year?', async (ask, t) => {
  const types = ['DEPOSIT', 'WITHDRAWAL']
  const { rows } = await ask('summarize', { list: 'account', types, by: ['year', 'type'] })
  const wanted = account.filter((row) => hasType(row, ...types))
  const keyOf = (row: ExportedRow) => `${dayOf(row).slice(0, 4)},${row.type},${row.currency}`
  t.strictSame(sumsOf(rows, 'amount', 'year', 'type', 'currency'), sums(wanted, 'amount', keyOf))
  return `${rows.length} sums`
})

question('Which interest did I receive and pay?', async (ask, t) => {
  const types = ['INTEREST', 'INTEREST_CHARGE']
  const { rows } = await ask('summarize', { list: 'account', types })
  const wanted = account.filter((row) => hasType(row, ...types))
  const keyOf = (row: ExportedRow) => `${row.type},${currencyOf(row)}`
  t.strictSame(sumsOf(rows, 'amount', 'type', 'currency'), sums(wanted, 'amount', keyOf))
  return rows.map(({ type, amount, currency }) => `${type} ${amount} ${currency}`).join(', ')
})

question('How many shares did I buy of one investment, and for how much?', async (ask, t) => {
  const [{ investment } = {}] = portfolio.filter((row) => hasType(row, 'BUY') && row.investment)
  const values = { list: 'portfolio', investment, types: ['BUY'] }
  const { rows } = await ask('summarize', values)
  const bought = portfolio.filter((row) => hasType(row, 'BUY') && row.investment === investment)
  for (const field of ['titles', 'amount', 'commission'])
    t.strictSame(sumsOf(rows, field, 'currency'), sums(bought, field, currencyOf), field)
  return rows.map((row) => `${row.titles} shares for ${row.amount} ${row.currency}`).join(', ')
})

question('What do I hold?', async (ask, t) => {
  const { rows, facts } = await ask('check_positions', { heldOnly: true })
  const shares = sharesOf(portfolio)
  t.equal(facts.truncated, false)
  for (const row of rows.filter(({ status }) => status === 'complete'))
    t.equal(units(row.shares), shares[`${row.portfolio},${row.investment}`])
  const found = new Set(rows.map((row) => `${row.portfolio},${row.investment}`))
  const held = Object.entries(shares).filter(([, value]) => value > 0n)
  for (const [key] of held) t.ok(found.has(key), key)
  t.notOk(rows.some(({ shares }) => shares !== '' && units(shares) === 0n))
  return `${rows.length} positions`
})

question('Is my history complete?', async (ask, t) => {
  const { rows, facts } = await ask('check_positions', { connection: 'fund' })
  t.match(rows, withLengths([{ status: 'gap', gapDay: '2021-06-30', expected: '40', found: '0' }]))
  t.same(facts.positionsByStatus, { complete: 0, gap: 1, notVerifiable: 0 })
  return `${rows[0]?.expected} shares expected, ${rows[0]?.found} found on ${rows[0]?.gapDay}`
})

question('In which month did I get the most dividends?', async (ask, t) => {
  const values = { list: 'account', ...ofYear, types: ['DIVIDENDS'], by: ['month'] }
  const { rows } = await ask('summarize', values)
  const arrived = account.filter((row) => isOfYear(row) && hasType(row, 'DIVIDENDS'))
  const keyOf = (row: ExportedRow) => `${dayOf(row).slice(0, 7)},${currencyOf(row)}`
  const wanted = sums(arrived, 'amount', keyOf)
  t.strictSame(sumsOf(rows, 'amount', 'month', 'currency'), wanted)
  // Amounts of different currencies do not compare.
  const best = [...new Set(arrived.map(currencyOf))].map((currency) => {
    const own = rows.filter((row) => row.currency === currency)
    const most = maximum(own.map(({ amount }) => units(amount)))
    const found = own.find(({ amount }) => units(amount) === most)
    return `${found?.month} ${found?.amount} ${currency}`
  })
  return best.sort().join(', ')
})

question('Which rows are about a word, also without its accents?', async (ask, t) => {
  const folded = (text: string | null | undefined) =>
    (text ?? '')
      .normalize('NFD')
      .replace(/[\u0300-\u036f]/g, '')
      .toLowerCase()
  const accented = portfolio.find(
    ({ description }) => folded(description) !== description?.toLowerCase(),
  )
  const text = folded(accented?.description).trim().slice(0, 80)
  t.ok(text)
  const { facts } = await ask('list_transactions', { list: 'portfolio', text, limit: 3 })
  const wanted = portfolio.filter(({ description }) => folded(description).includes(text))
  t.equal(facts.total, wanted.length)
  const none = await ask('list_transactions', { list: 'portfolio', text: 'zeppelin' })
  t.match(String(none.facts.notes), /No row is selected.*0 rows of the list have the text/)
  return `${facts.total} rows, and none of another word`
})

question('How many transactions do I have, and of which types?', async (ask, t) => {
  const { facts } = await ask('describe_connection', {})
  for (const [list, rows] of Object.entries({ portfolio, account })) {
    t.equal(facts[list].rows, rows.length)
    for (const [type, count] of Object.entries(facts[list].rowsByType))
      t.equal(count, rows.filter((row) => row.type === type).length, type)
  }
  return `${facts.portfolio.rows} and ${facts.account.rows}`
})

question('Which transfers of investments did I order?', async (ask, t) => {
  const { rows, facts } = await ask('list_transfer_orders', { connection: 'small' })
  const names = await namesOf('small')
  t.strictSame(rows.map(({ name }) => name).sort(), [...names.values()].sort())
  return `${facts.total}: ${rows.map(({ name, titles }) => `${titles} of ${name}`).join(', ')}`
})

t.test('the table', async (t) => {
  t.ok(table.length >= 20)
  t.comment(`\n| Question | Calls | Tokens | Figure |\n|---|---|---|---|\n${table.join('\n')}`)
})
