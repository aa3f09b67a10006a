import { mock } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Registry } from 'prom-client'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { IdentityProviderUnavailable, identityProvider } from '../../src/http/identity-provider.ts'
import { type Issuer, startIssuer } from '../support/issuer.ts'
import { until } from '../support/until.ts'

const rejected = { code: 'invalid_token' }
/** Time after which an unknown key id causes a fetch. */
const COOLDOWN_MS = 10_000

/** Verifies the tokens of an issuer. */
async function start(t: Test) {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  const warnings: string[] = []
  const log = { warn: (_facts: unknown, message?: string) => warnings.push(String(message)) }
  const config = readConfig({ DATABASE_URL: 'postgres://127.0.0.1/x', ...issuer.environment })
  const metrics = new Registry()
  const provider = identityProvider(config, { log: log as never, metrics })
  const verify = async (token: string) => provider(token)
  const metric = async (name: string) =>
    Number(new RegExp(`^identity_provider_${name} (.*)$`, 'm').exec(await metrics.metrics())?.[1])
  return { issuer, verify, metric, warnings }
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
  const { issuer, verify } = await start(t)
  const setClock = stopClock(t)
  const old = await fresh(issuer)
  t.equal(await verify(old), 'client')
  await issuer.addKey('second')
  setClock(COOLDOWN_MS)
  t.equal(await verify(await fresh(issuer)), 'client')
  t.equal(await verify(old), 'client')
  t.equal(issuer.fetches, 2)
})

t.test('withdrawn key: rejected after the next fetch', async (t) => {
  const { issuer, verify } = await start(t)
  const setClock = stopClock(t)
  const old = await fresh(issuer)
  t.equal(await verify(await fresh(issuer)), 'client')
  issuer.keys.clear()
  await issuer.addKey('second')
  setClock(COOLDOWN_MS)
  await verify(await fresh(issuer))
  await t.rejects(verify(old), rejected)
})

t.test('withdrawn key: a verified token is not verified again for a minute', async (t) => {
  const { issuer, verify } = await start(t)
  const setClock = stopClock(t)
  const token = await fresh(issuer)
  // Accepted for 9 s more, because the clocks may differ by 10 s.
  const expired = await issuer.sign({ exp: Math.floor(Date.now() / 1000) - 1 })
  t.equal(await verify(await fresh(issuer)), 'client')
  setClock(COOLDOWN_MS)
  t.equal(await verify(token), 'client')
  t.equal(await verify(expired), 'client')
  issuer.keys.clear()
  await issuer.addKey('second')
  t.equal(await verify(await fresh(issuer)), 'client')
  setClock(COOLDOWN_MS + 59_999)
  t.equal(await verify(token), 'client')
  setClock(COOLDOWN_MS + 60_001)
  await t.rejects(verify(token), rejected)
})

t.test('unknown key ids: no fetch during the cooldown', async (t) => {
  const { issuer, verify } = await start(t)
  await verify(await fresh(issuer))
  for (let i = 0; i < 50; i += 1) {
    await t.rejects(verify(await issuer.sign({}, { kid: `made up ${i}` })), rejected)
  }
  t.equal(issuer.fetches, 1)
})

t.test('failed fetch: no new one for a second; unknown key ids: for ten seconds', async (t) => {
  const { issuer, verify, metric } = await start(t)
  const setClock = stopClock(t)
  const publish = issuer.respond
  issuer.respond = (response) => response.writeHead(500).end()
  for (const [ms, fetches] of [[0, 1] as const, [999, 1] as const, [1_000, 2] as const]) {
    setClock(ms)
    await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable)
    t.equal(issuer.fetches, fetches)
  }
  t.equal(await metric('failures_total'), 2)
  t.equal(await metric('keys_age_seconds'), 0)
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
  const { issuer, verify, warnings } = await start(t)
  stopClock(t)
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
    'a broken line': (response) => void response.write('{"keys":', () => response.destroy()),
  }
  for (const [what, response] of Object.entries(responses)) {
    await t.test(what, async (t) => {
      const { issuer, verify } = await start(t)
      const setClock = stopClock(t)
      const publish = issuer.respond
      issuer.respond = response
      await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable)
      issuer.respond = publish
      setClock(1_000)
      t.equal(await verify(await fresh(issuer)), 'client', 'recovers')
      issuer.respond = response
      setClock(1_000 + COOLDOWN_MS)
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

t.test(
  'keys of ten minutes: fetched again, also without a request, and in use until then',
  async (t) => {
    mock.timers.enable({ apis: ['setInterval'] })
    t.teardown(() => mock.timers.reset())
    const { issuer, verify, metric } = await start(t)
    mock.timers.tick(600_000)
    t.equal(issuer.fetches, 0, 'no fetch before the first token')
    await verify(await fresh(issuer))
    let respond = () => {}
    issuer.respond = (response) => {
      respond = () => response.end('{"keys":[]}')
    }
    mock.timers.tick(599_999)
    t.equal(issuer.fetches, 1)
    mock.timers.tick(1)
    await until('the fetch has started', () => issuer.fetches === 2)
    t.equal(await verify(await fresh(issuer)), 'client', 'no request waits for it')
    respond()
    const isWithdrawn = async () =>
      verify(await fresh(issuer)).then(
        () => false,
        ({ code }) => code === rejected.code,
      )
    await until('the withdrawn key is rejected', isWithdrawn)
    t.equal(await metric('failures_total'), 0)
  },
)

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

t.test('age of the keys: since the last fetch', async (t) => {
  const { issuer, verify, metric } = await start(t)
  const setClock = stopClock(t)
  t.equal(await metric('keys_age_seconds'), 0)
  await verify(await fresh(issuer))
  setClock(150_000)
  t.equal(await metric('keys_age_seconds'), 150)
})
