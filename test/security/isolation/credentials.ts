import fc from 'fast-check'
import type { Kysely } from 'kysely'
import type { Tables } from '../../../src/postgres/tables.ts'
import type { Issuer } from '../../support/issuer.ts'
import { addToken } from '../../support/rows.ts'

export type Standing = 'valid' | 'expired' | 'revoked'

/** A token of the service's own, or a JWT of the identity provider, as an app is to have it. */
export interface CredentialPlan {
  kind: 'own' | 'jwt'
  standing: Standing
}

export const credentialPlan: fc.Arbitrary<CredentialPlan> = fc.record({
  kind: fc.constantFrom('own', 'jwt'),
  standing: fc.constantFrom('valid', 'expired', 'revoked'),
})

/** Every kind in every standing. */
export const everyCredential = (['own', 'jwt'] as const).flatMap((kind) =>
  (['valid', 'expired', 'revoked'] as const).map((standing) => ({ kind, standing })),
)

/** Where tokens of both kinds come from. */
export interface Sources {
  db: Kysely<Tables>
  issuer: Issuer
}

export interface Bearer {
  token: string
  /** Whose it is; empty for nobody's. */
  appId: string
  /** What the service has to take it for. */
  standing: Standing
}

interface App {
  appId: string
  clientId: string
  /** Whether the database has the client id, or only the provider. */
  isKnown: boolean
}

export async function issueCredential(
  { db, issuer }: Sources,
  { appId, clientId, isKnown }: App,
  { kind, standing }: CredentialPlan,
): Promise<Bearer> {
  if (kind === 'own') return { appId, standing, token: await addToken(db, appId, DATES[standing]) }
  const token = await signed(issuer, clientId, standing)
  if (!isKnown && standing === 'valid') return { appId: '', standing: 'revoked', token }
  return { appId, standing, token }
}

const PAST = '2020-01-01T00:00:00Z'
const DATES = { valid: {}, expired: { expires_at: PAST }, revoked: { revoked_at: PAST } }

/** A JWT cannot be revoked: one with a broken signature stands for all that are not to be believed. */
async function signed(issuer: Issuer, client_id: string, standing: Standing): Promise<string> {
  if (standing === 'expired') return issuer.sign({ client_id, exp: Date.parse(PAST) / 1000 })
  const token = await issuer.sign({ client_id })
  if (standing === 'valid') return token
  const [head, claims, signature = ''] = token.split('.')
  return [head, claims, [...signature].reverse().join('')].join('.')
}

/** Tokens that no app has: an unknown one, and JWTs whose client ids are names of other things. */
export async function strangers({ issuer }: Sources, appId: string): Promise<Bearer[]> {
  const names = ['nobody', appId]
  const jwts = await Promise.all(names.map((client_id) => issuer.sign({ client_id })))
  const tokens = [`app_${'x'.repeat(43)}`, ...jwts]
  return tokens.map((token) => ({ token, appId: '', standing: 'revoked' }))
}
