import fc from 'fast-check'
import type { Kysely } from 'kysely'
import type { Tables } from '../../src/database/tables.ts'
import {
  addAccountTransactions,
  addApp,
  addConnection,
  addPortfolioTransactions,
  addresses,
  addToken,
  addTransferOrders,
} from '../rows.ts'

export type Standing = 'valid' | 'expired' | 'revoked'
export const endpoints = ['portfolio', 'account', 'orders'] as const
export type Endpoint = (typeof endpoints)[number]

/** What an app is to have: tokens of some standing, and connections by their tokens. */
export interface AppPlan {
  tokens: Standing[]
  connections: { token: string; rows: number }[]
}

// So few that apps often have connections of the same token.
export const connectionTokens = ['one', 'two', 'three', 'four', 'five', 'six']

export const worldPlan: fc.Arbitrary<AppPlan[]> = fc.array(
  fc.record({
    tokens: fc.array(fc.constantFrom<Standing>('valid', 'expired', 'revoked'), {
      minLength: 1,
      maxLength: 4,
    }),
    connections: fc.uniqueArray(
      fc.record({ token: fc.constantFrom(...connectionTokens), rows: fc.nat(3) }),
      { selector: ({ token }) => token, maxLength: 4 },
    ),
  }),
  { minLength: 2, maxLength: 5 },
)

export interface Bearer {
  token: string
  appId: string
  standing: Standing
}

/** The model: who may see what. */
export interface World {
  bearers: Bearer[]
  appIds: string[]
  /** The ids of the rows behind a connection token, for one app. */
  rowsOf(appId: string, token: string): Record<Endpoint, string[]> | undefined
  /** Every row id that an app has. */
  secretsOf(appId: string): string[]
  addresses(token: string): Record<Endpoint, string>
}

export async function createWorld(db: Kysely<Tables>, plan: AppPlan[]): Promise<World> {
  const rows = new Map<string, Record<Endpoint, string[]>>()
  const bearers: Bearer[] = []
  const appIds: string[] = []
  // Tokens of this world alone: others are in the same tables.
  const own = crypto.randomUUID()
  for (const { tokens, connections } of plan) {
    const appId = await addApp(db)
    appIds.push(appId)
    for (const standing of tokens) {
      bearers.push({ appId, standing, token: await addToken(db, appId, DATES[standing]) })
    }
    for (const { token, rows: count } of connections) {
      const connection = await addConnection(db, appId, `${token} ${own}`)
      rows.set(`${appId} ${token}`, await addRows(db, connection, count))
    }
  }
  const secretsOf = (appId: string) =>
    [...rows].flatMap(([key, ids]) => (key.startsWith(appId) ? Object.values(ids).flat() : []))
  return {
    bearers,
    appIds,
    rowsOf: (appId, token) => rows.get(`${appId} ${token}`),
    secretsOf,
    addresses: (token) => addresses(`${token} ${own}`),
  }
}

const PAST = '2020-01-01T00:00:00Z'
const DATES = { valid: {}, expired: { expires_at: PAST }, revoked: { revoked_at: PAST } }

async function addRows(db: Kysely<Tables>, connection: { id: string }, count: number) {
  const none = Array.from({ length: count }, () => ({}))
  if (count === 0) return { portfolio: [], account: [], orders: [] }
  return {
    portfolio: await addPortfolioTransactions(db, connection, ...none),
    account: await addAccountTransactions(db, connection, ...none),
    orders: await addTransferOrders(db, connection, ...none),
  }
}
