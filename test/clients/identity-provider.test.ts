/**
 * The tokens of a real identity provider. node-oidc-provider is an independent implementation of the standards for tokens and
 * key sets: RFC 6749 section 4.4, RFC 9068 and RFC 7517.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import Provider from 'oidc-provider'
import t, { type Test } from 'tap'
import { isProblem } from '../support/problem.ts'
import { addApp, addConnection } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const AUDIENCE = 'urn:investments'
const CLIENT = { client_id: 'wealth', client_secret: 'only-in-this-test' }

async function startProvider(t: Test) {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  /** Replaces the key of the provider. */
  const rotate = async (kid: string) => {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true })
    // It warns that its storage is in memory.
    const warnings = t.capture(console, 'warn', () => {})
    const provider = new Provider(issuer, {
      jwks: { keys: [{ ...(await exportJWK(privateKey)), kid, alg: 'ES256', use: 'sig' }] },
      clients: [
        {
          ...CLIENT,
          grant_types: ['client_credentials'],
          id_token_signed_response_alg: 'ES256',
          redirect_uris: [],
          response_types: [],
        },
      ],
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: () => ({
            scope: 'read',
            audience: AUDIENCE,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: 'ES256' } },
          }),
        },
      },
    })
    warnings.restore()
    server.removeAllListeners('request').on('request', provider.callback())
  }
  const token = async (): Promise<string> => {
    const { client_id, client_secret } = CLIENT
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString('base64')
    const response = await fetch(`${issuer}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        resource: AUDIENCE,
        scope: 'read',
      }),
    })
    const { access_token } = (await response.json()) as { access_token: string }
    return access_token
  }
  await rotate('first')
  return { issuer, rotate, token }
}

t.test('token of a real provider: accepted until its key is rotated', async (t) => {
  const { issuer, rotate, token } = await startProvider(t)
  const { jwks_uri } = (await (
    await fetch(`${issuer}/.well-known/openid-configuration`)
  ).json()) as { jwks_uri: string }
  const { db, get } = await startService(t, {
    environment: { AUTH_ISSUER: issuer, AUTH_AUDIENCE: AUDIENCE, AUTH_JWKS_URL: jwks_uri },
  })
  const mine = await addConnection(db, await addApp(db, { client_id: CLIENT.client_id }))
  const foreign = await addConnection(db, await addApp(db, { client_id: 'another' }))
  const old = await token()
  const response = await get(mine.orders, { token: old })
  t.equal(response.status, 200)
  t.equal(response.text, '[]')
  isProblem(t, await get(foreign.orders, { token: old }), 'connection_not_found')

  await rotate('second')
  const renewed = await token()
  // Verified tokens are cached for a minute, and the keys for ten.
  const elevenMinutesLater = Date.now() + 11 * 60_000 + 1_000
  t.capture(Date, 'now', () => elevenMinutesLater)
  t.equal((await get(mine.orders, { token: renewed })).status, 200)
  isProblem(t, await get(mine.orders, { token: old }), 'invalid_token')
})
