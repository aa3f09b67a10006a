import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Registry } from 'prom-client'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { IdentityProviderUnavailable } from '../../src/http/error-handler.ts'
import { configuredProvider, identityProvider } from '../../src/http/identity-provider.ts'
import { type SigningKeysOptions, signingKeys } from '../../src/http/jwks.ts'
import { AUDIENCE, type Issuer, startIssuer } from '../support/issuer.ts'
import { until } from '../support/until.ts'

const rejected = { code: 'invalid_token' }

/** Verifies the tokens of an issuer with other cache times than the service. */
async function start(t: Test, times: Partial<SigningKeysOptions> = {}) {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  const warnings: string[] = []
  const log = { warn: (_facts: unknown, message?: string) => warnings.push(String(message)) }
  const keys = signingKeys({ url: String(issuer.environment.AUTH_JWKS_URL), log, ...times })
  const provider = identityProvider({
    issuer: String(issuer.environment.AUTH_ISSUER),
    audience: AUDIENCE,
    clientIdClaim: undefined,
    keys: keys.find,
  })
  const verify = (token: string) => provider(token)
  return { issuer, verify, keys, warnings }
}

/** Stops the clock. Returns a function that sets it to a time from now, in ms. */
function stopClock(t: Test): (ms: number) => void {
  const began = Date.now()
  const set = (ms: number) => void t.capture(Date, 'now', () => began + ms)
  set(0)
  return set
}

/** Creates a new token each time, so that none is cached as verified. */
let serial = 0
function fresh(issuer: Issuer): Promise<string> {
  serial += 1
  return issuer.sign({ jti: String(serial) })
}

t.test('new key: accepted, and the old one while it is published', async (t) => {
  const { issuer, verify } = await start(t, { cooldownMs: 0 })
  const old = await fresh(issuer)
  t.equal(await verify(old), 'client')
  await issuer.addKey('second')
  t.equal(await verify(await fresh(issuer)), 'client')
  t.equal(await verify(old), 'client')
  t.equal(issuer.fetches, 2)
})

t.test('withdrawn key: rejected after the next fetch', async (t) => {
  const { issuer, verify } = await start(t, { cooldownMs: 0 })
  const old = await fresh(issuer)
  t.equal(await verify(await fresh(issuer)), 'client')
  issuer.keys.clear()
  await issuer.addKey('second')
  await verify(await fresh(issuer))
  await t.rejects(verify(old), rejected)
})

t.test('withdrawn key: a verified token is not verified again for a minute', async (t) => {
  const { issuer, verify } = await start(t, { cooldownMs: 0 })
  const setClock = stopClock(t)
  const token = await fresh(issuer)
  // Accepted for 5 s more, because the clocks may differ by 10 s.
  const expired = await issuer.sign({ exp: Math.floor(Date.now() / 1000) - 5 })
  for (const each of [token, expired]) t.equal(await verify(each), 'client')
  issuer.keys.clear()
  await issuer.addKey('second')
  t.equal(await verify(await fresh(issuer)), 'client')
  t.equal(await verify(expired), 'client')
  setClock(59_999)
  t.equal(await verify(token), 'client')
  setClock(60_001)
  await t.rejects(verify(token), rejected)
})

t.test('unknown key ids: no fetch during the cooldown', async (t) => {
  const { issuer, verify } = await start(t, { cooldownMs: 60_000 })
  await verify(await fresh(issuer))
  for (let i = 0; i < 50; i += 1) {
    await t.rejects(verify(await issuer.sign({}, { kid: `made up ${i}` })), rejected)
  }
  t.equal(issuer.fetches, 1)
})

t.test('failed fetch: no new one for a second; unknown key ids: for ten seconds', async (t) => {
  const { issuer, verify, keys } = await start(t)
  const setClock = stopClock(t)
  const publish = issuer.respond
  issuer.respond = (response) => response.writeHead(500).end()
  for (const [ms, fetches] of [[0, 1] as const, [999, 1] as const, [1_000, 2] as const]) {
    setClock(ms)
    await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable)
    t.equal(issuer.fetches, fetches)
  }
  t.equal(keys.failures(), 2)
  t.equal(keys.fetchedAt(), Number.NEGATIVE_INFINITY)
  issuer.respond = publish
  setClock(2_000)
  t.equal(await verify(await fresh(issuer)), 'client')
  for (const [ms, fetches] of [[11_999, 3] as const, [12_000, 4] as const]) {
    setClock(ms)
    await t.rejects(verify(await issuer.sign({}, { kid: 'unknown' })), rejected)
    t.equal(issuer.fetches, fetches)
  }
})

t.test('concurrent requests: wait for one fetch', async (t) => {
  const { issuer, verify } = await start(t)
  const publish = issuer.respond
  issuer.respond = (response) => void sleep(100).then(() => publish(response))
  const tokens = await Promise.all(Array.from({ length: 100 }, () => fresh(issuer)))
  t.same(new Set(await Promise.all(tokens.map(verify))), new Set(['client']))
  t.equal(issuer.fetches, 1)
})

t.test('provider that does not respond: timeout, and no new fetch for a while', async (t) => {
  const { issuer, verify, warnings } = await start(t, { timeoutMs: 100, retryMs: 60_000 })
  issuer.respond = () => {}
  const tokens = await Promise.all(Array.from({ length: 20 }, () => fresh(issuer)))
  const results = await Promise.allSettled(tokens.map(verify))
  for (const result of results) {
    t.ok(result.status === 'rejected' && result.reason instanceof IdentityProviderUnavailable)
  }
  await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable)
  t.equal(issuer.fetches, 1)
  t.equal(warnings.length, 1)
})

t.test('response that is not a key set: an outage, not an invalid token', async (t) => {
  const responses: Record<string, Issuer['respond']> = {
    'an error': (response) => void response.writeHead(500).end('{"keys":[]}'),
    'another address': (response) =>
      void response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
    'no JSON': (response) => void response.end('<html>'),
    'JSON of another type': (response) => void response.end('{"keys":7}'),
    'too much of it': (response) => void response.end(`{"keys":[]${' '.repeat(300_000)}}`),
    'a broken line': (response) => void response.write('{"keys":', () => response.destroy()),
  }
  for (const [what, response] of Object.entries(responses)) {
    await t.test(what, async (t) => {
      const { issuer, verify } = await start(t, { retryMs: 0, cooldownMs: 0 })
      const publish = issuer.respond
      issuer.respond = response
      await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable)
      issuer.respond = publish
      t.equal(await verify(await fresh(issuer)), 'client', 'recovers')
      issuer.respond = response
      t.equal(await verify(await fresh(issuer)), 'client', 'known keys remain in use')
      const strange = await issuer.sign({}, { kid: 'strange' })
      await t.rejects(verify(strange), IdentityProviderUnavailable)
    })
  }
})

t.test('unusable key in the set: an outage only for its tokens', async (t) => {
  const { issuer, verify } = await start(t)
  const good = await fresh(issuer)
  await issuer.addKey('broken')
  issuer.keys.set('broken', { kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA', kid: 'broken' })
  await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable)
  t.equal(await verify(good), 'client')
})

t.test('token without a key id, two matching keys: rejected', async (t) => {
  const { issuer, verify } = await start(t)
  t.equal(await verify(await issuer.sign({}, { kid: undefined })), 'client')
  const { issuer: other, verify: verifyOther } = await start(t)
  await other.addKey('second')
  await t.rejects(verifyOther(await other.sign({}, { kid: undefined })), rejected)
})

t.test('key withdrawn during a time without requests: rejected', async (t) => {
  const { issuer, verify } = await start(t)
  const token = await fresh(issuer)
  await verify(await fresh(issuer))
  issuer.respond = (response) => response.end('{"keys":[]}')
  const anHourLater = Date.now() + 3_600_000
  t.capture(Date, 'now', () => anHourLater)
  await t.rejects(verify(token), rejected)
})

t.test('unreachable provider: its keys remain in use for a day', async (t) => {
  const { issuer, verify } = await start(t)
  const began = Date.now()
  const hoursLater = (hours: number) => t.capture(Date, 'now', () => began + hours * 3_600_000)
  t.equal(await verify(await fresh(issuer)), 'client')
  await issuer.close()
  hoursLater(23.9)
  t.equal(await verify(await fresh(issuer)), 'client')
  hoursLater(24.1)
  await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable, 'an outage, not a 401')
  await t.rejects(
    verify(await fresh(issuer)),
    IdentityProviderUnavailable,
    'the same for the next request',
  )
  await issuer.listen()
  hoursLater(24.2)
  t.equal(await verify(await fresh(issuer)), 'client', 'recovers without a restart')
})

t.test('keys of ten minutes: fetched in the background, and in use until then', async (t) => {
  const { issuer, verify, keys } = await start(t, { timeoutMs: 20_000 })
  const setClock = stopClock(t)
  const verifyAt = async (ms: number, fetches: number) => {
    setClock(ms)
    const failures = keys.failures()
    t.equal(await verify(await fresh(issuer)), 'client')
    // The test responds later. A request that waits ends when the fetch has failed.
    t.equal(keys.failures(), failures, 'no request waits for the fetch')
    await until('the fetch has started', () => issuer.fetches >= fetches)
    t.equal(issuer.fetches, fetches)
  }
  await verifyAt(0, 1)
  await verifyAt(600_000, 1)
  let fail = () => {}
  issuer.respond = (response) => {
    fail = () => response.writeHead(500).end()
  }
  await verifyAt(660_000, 2)
  fail()
  await until('the fetch has failed', () => keys.failures() === 1)
  // The last attempt was a minute ago.
  await verifyAt(720_000, 3)
  fail()
})

t.test('signatures: two are verified at once, and none for a wrong algorithm or key', async (t) => {
  const { issuer, verify } = await start(t)
  const [header = '', payload = ''] = (await fresh(issuer)).split('.')
  let inFlight = 0
  const seen: number[] = []
  const verifySignature = crypto.subtle.verify.bind(crypto.subtle)
  t.intercept(crypto.subtle, 'verify', {
    value: (...args: Parameters<typeof crypto.subtle.verify>) => {
      inFlight += 1
      seen.push(inFlight)
      return verifySignature(...args).finally(() => {
        inFlight -= 1
      })
    },
  })
  const rejectAll = (first: string) =>
    Promise.all(
      Array.from({ length: 20 }, () => {
        const signature = randomBytes(64).toString('base64url')
        return t.rejects(verify(`${first}.${payload}.${signature}`), rejected)
      }),
    )
  await rejectAll(header)
  t.equal(seen.length, 20)
  t.equal(Math.max(...seen), 2)
  for (const wrong of [{ alg: 'none' }, { alg: 'HS256', kid: 'first' }, { alg: 'ES256', kid: 'x' }])
    await rejectAll(Buffer.from(JSON.stringify(wrong)).toString('base64url'))
  t.equal(seen.length, 20)
  t.equal(await verify(await fresh(issuer)), 'client')
})

t.test('age of the keys: since the last fetch', async (t) => {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  const setClock = stopClock(t)
  const config = readConfig({ DATABASE_URL: 'postgres://127.0.0.1/x', ...issuer.environment })
  const metrics = new Registry()
  const verify = configuredProvider(config, { log: { warn: () => {} }, metrics })
  t.notMatch(await metrics.metrics(), /\nidentity_provider_keys_age_seconds [^0]/)
  await verify?.(await fresh(issuer))
  setClock(150_000)
  t.match(await metrics.metrics(), '\nidentity_provider_keys_age_seconds 150\n')
})
