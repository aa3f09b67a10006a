import type { Kysely } from 'kysely'
import type { Tables } from '../../../src/postgres/tables.ts'
import type { Issuer } from '../../support/issuer.ts'
import { fc } from '../../support/random.ts'
import { addToken } from '../../support/rows.ts'

export type TokenState = 'valid' | 'expired' | 'revoked'

/** A token of the service, or a JWT of the identity provider. */
export interface CredentialPlan {
  type: 'own' | 'jwt'
  state: TokenState
}

export const credentialPlan: fc.Arbitrary<CredentialPlan> = fc.record({
  type: fc.constantFrom('own', 'jwt'),
  state: fc.constantFrom('valid', 'expired', 'revoked'),
})

/** Both types in each state. */
export const everyCredential = (['own', 'jwt'] as const).flatMap((type) =>
  (['valid', 'expired', 'revoked'] as const).map((state) => ({ type, state })),
)

/** Sources of both types of tokens. */
export interface Sources {
  db: Kysely<Tables>
  issuer: Issuer
}

export interface Bearer {
  token: string
  /** Owner of the token; '' for none. */
  appId: string
  /** State that the service must find. */
  state: TokenState
}

interface App {
  appId: string
  clientId: string
  /** True if the database has the client id, too. */
  isKnown: boolean
}

export async function issueCredential(
  { db, issuer }: Sources,
  { appId, clientId, isKnown }: App,
  { type, state }: CredentialPlan,
): Promise<Bearer> {
  if (type === 'own') return { appId, state, token: await addToken(db, appId, DATES[state]) }
  const token = await signed(issuer, clientId, state)
  if (!isKnown && state === 'valid') return { appId: '', state: 'revoked', token }
  return { appId, state, token }
}

const PAST = '2020-01-01T00:00:00Z'
const DATES = { valid: {}, expired: { expires_at: PAST }, revoked: { revoked_at: PAST } }

/** A JWT cannot be revoked; one with a wrong signature takes the place of a revoked one. */
async function signed(issuer: Issuer, client_id: string, state: TokenState): Promise<string> {
  if (state === 'expired') return issuer.sign({ client_id, exp: Date.parse(PAST) / 1000 })
  const token = await issuer.sign({ client_id })
  if (state === 'valid') return token
  const [head, claims, signature = ''] = token.split('.')
  return [head, claims, [...signature].reverse().join('')].join('.')
}

/** Tokens of no app: an unknown token, and JWTs whose client id is not one of an app. */
export async function unknownBearers({ issuer }: Sources, appId: string): Promise<Bearer[]> {
  const names = ['nobody', appId]
  const jwts = await Promise.all(names.map((client_id) => issuer.sign({ client_id })))
  const tokens = [`app_${'x'.repeat(43)}`, ...jwts]
  return tokens.map((token) => ({ token, appId: '', state: 'revoked' }))
}
