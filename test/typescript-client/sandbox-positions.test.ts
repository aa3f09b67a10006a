import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Driver, startDrivers } from '../support/clients/drivers.ts'
import { operatorHere } from '../support/operator-process.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

/** Positions of the sample data, on each of 60 days, as the clients see them. */
interface State {
  afterDays: number
  positions: { portfolioId: string; investment: string; titles: Record<string, string> }[]
  firstGap?: { expected: string; found: string }
}

/** Without CLIENTS=all, only the days on which a story changes. */
const DAYS = process.env.CLIENTS === 'all' ? 60 : 5
const path = join(import.meta.dirname, '../../seeds/expected.json')
const expected = JSON.parse(await readFile(path, 'utf8')) as Record<string, State[]>
const service = await startSeededService(t)
const clients = Object.entries(startDrivers(t))
const folder = t.testdir({})
/** All clients read the copies that the first one keeps. */
const [writer] = clients.map(([, client]) => client)
if (writer === undefined) throw new Error('no client')
const fileOf = (token: string) => join(folder, `${token}.db`)

/** Positions by portfolio and investment, without those of which nothing is left. */
type Shares = Record<string, string>

/** Removes zeros at the end, which have no meaning here. */
const plain = (digits: string) =>
  digits.includes('.') ? digits.replace(/0+$/, '').replace(/\.$/, '') : digits

/**
 * Positions of a day. Those of expected.json are sums of the rows. In a history without its beginning, a row states
 * more shares, and the clients count on from there.
 */
function sharesAt({ positions, firstGap }: State, day: string): Shares {
  const missing = Number(firstGap?.expected ?? 0) - Number(firstGap?.found ?? 0)
  const shares: Shares = {}
  for (const { portfolioId, investment, titles } of positions) {
    const [, last = '0'] = Object.entries(titles).findLast(([changed]) => changed <= day) ?? []
    const size = missing === 0 ? plain(last) : String(Number(last) + missing)
    if (size !== '0') shares[`${portfolioId} ${investment}`] = size
  }
  return shares
}

async function positionsAt(client: Driver, file: string, to?: string): Promise<Shares> {
  return sharesOf(await client.read(file, 'mine', 'positions', to === undefined ? {} : { to }))
}

/** Positions at the end of each day of a range, in the same form. */
async function positionsByDay(client: Driver, file: string, from: string, to: string) {
  const days = await client.read(file, 'mine', 'positionsByDay', { from, to })
  return days.map(({ day, positions }) => ({
    day: String(day),
    shares: sharesOf(positions as Record<string, unknown>[]),
  }))
}

function sharesOf(positions: Record<string, unknown>[]): Shares {
  const held = positions.filter(({ shares }) => plain(String(shares)) !== '0')
  const entries = held.map((each) => [
    `${each.portfolioId} ${each.investment}`,
    plain(String(each.shares)),
  ])
  return Object.fromEntries(entries)
}

/** Days on which a position changes, and the days before them. */
function daysOf({ positions }: State): string[] {
  const changes = positions.flatMap(({ titles }) => Object.keys(titles))
  const before = changes.map((day) =>
    new Date(Date.parse(day) - 86_400_000).toISOString().slice(0, 10),
  )
  return [...new Set([...changes, ...before])].sort()
}

async function compare(t: Test, client: Driver, token: string, state: State) {
  const file = fileOf(token)
  const days = daysOf(state)
  for (const day of days)
    t.strictSame(await positionsAt(client, file, day), sharesAt(state, day), `${token}, ${day}`)
  t.strictSame(await positionsAt(client, file), sharesAt(state, '9999-12-31'), token)
  const [from = '', to = ''] = [days[0], days.at(-1)]
  for (const { day, shares } of await positionsByDay(client, file, from, to))
    t.strictSame(shares, sharesAt(state, day), `${token}, ${day}, of all days`)
}

t.test('positions of each story on each day: those of expected.json', async (t) => {
  for (let day = 0; day <= DAYS; day += 1) {
    if (day > 0) {
      const args = ['demo', 'advance', '--days', '1']
      const ended = await operatorHere(args, { DATABASE_URL: service.databaseUrl })
      t.equal(ended.code, 0, ended.stderr)
    }
    for (const [token, states] of Object.entries(expected)) {
      const state = states.findLast(({ afterDays }) => afterDays <= day)
      if (state === undefined) throw new Error(`${token} has no state`)
      // A story that stays the same is read on its first day alone, with the days on which it changes.
      const isNew = day === 0 || states.some(({ afterDays }) => afterDays === day)
      const access = { url: service.url, token: DEMO_TOKEN, connection: token }
      await writer.copy(access, fileOf(token), 'mine')
      const last = sharesAt(state, '9999-12-31')
      for (const [language, client] of clients) {
        if (isNew) await compare(t, client, token, state)
        const found = await positionsAt(client, fileOf(token))
        t.strictSame(found, last, `${language}: ${token} after ${day} days`)
      }
    }
  }
})

t.test('name and ISIN of an investment: those of its transfer orders', async (t) => {
  for (const [, client] of clients) {
    const found = await client.read(fileOf('DEMOSMALL1'), 'mine', 'positions')
    const named = found.map(({ name, isin, shares }) => [name, isin, shares])
    t.strictSame(named, [
      ['Hispania Renovables', 'ESDEMO000015', '200'],
      [null, null, '7.5'],
      [null, null, '0.000000000000000000000000000001'],
      [null, null, '0'],
    ])
  }
})
