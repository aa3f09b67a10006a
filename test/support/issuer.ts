import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Test } from 'tap'

/** An identity provider that signs tokens and publishes its keys. */
export interface Issuer {
  /** Settings of a service that accepts its tokens. */
  environment: Record<string, string>
  /** Published keys, by key id. */
  keys: Map<string, object>
  /** Number of requests for its keys. */
  fetches: number
  /** Responds to a request for the keys. Tests replace it. */
  respond: (response: ServerResponse) => void
  addKey(kid: string, alg?: string): Promise<CryptoKey>
  /** Signs a valid token with the last key, unless the arguments differ. */
  sign(
    claims?: Record<string, unknown>,
    header?: Record<string, unknown>,
    key?: CryptoKey,
  ): Promise<string>
  listen(): Promise<void>
  close(): Promise<void>
}

const AUDIENCE = 'urn:test:service'

export async function startIssuer(t: Test): Promise<Issuer> {
  let server: Server | undefined
  let port = 0
  let last: { key: CryptoKey; kid: string; alg: string } | undefined
  const issuer: Issuer = {
    environment: {},
    keys: new Map(),
    fetches: 0,
    respond: (response) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ keys: [...issuer.keys.values()] }))
    },
    addKey: async (kid, alg = 'ES256') => {
      const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
      issuer.keys.set(kid, { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' })
      last = { key: privateKey, kid, alg }
      return privateKey
    },
    sign: async (claims = {}, header = {}, key = last?.key) => {
      const now = Math.floor(Date.now() / 1000)
      const standard = { iss: String(issuer.environment.AUTH_ISSUER), aud: AUDIENCE, iat: now }
      if (last === undefined || key === undefined) throw new Error('the issuer has no key')
      return new SignJWT({ ...standard, exp: now + 300, client_id: 'client', ...claims })
        .setProtectedHeader({ alg: last.alg, kid: last.kid, typ: 'at+jwt', ...header })
        .sign(key)
    },
    listen: async () => {
      server = createServer((_request, response) => {
        issuer.fetches += 1
        issuer.respond(response)
      })
      await once(server.listen(port, '127.0.0.1'), 'listening')
      port = (server.address() as AddressInfo).port
    },
    close: async () => {
      if (!server?.listening) return
      server.closeAllConnections()
      await new Promise((resolve) => server?.close(resolve))
    },
  }
  await issuer.listen()
  t.teardown(() => issuer.close())
  issuer.environment = {
    AUTH_ISSUER: `http://127.0.0.1:${port}`,
    AUTH_AUDIENCE: AUDIENCE,
    AUTH_JWKS_URL: `http://127.0.0.1:${port}/keys`,
  }
  return issuer
}
