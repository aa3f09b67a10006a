import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { IdentityProviderUnavailable } from '../../src/http/errors.ts'
import { identityProvider } from '../../src/http/identity-provider.ts'
import { type SigningKeysOptions, signingKeys } from '../../src/http/jwks.ts'
import { InvalidToken } from '../../src/queries/caller.ts'
import { AUDIENCE, type Issuer, startIssuer } from '../support/issuer.ts'

/** Verifies tokens of an issuer whose keys are cached for other times than the service has them. */
async function start(t: Test, times: Partial<SigningKeysOptions> = {}) {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  const warnings: string[] = []
  const log = { warn: (_facts: unknown, message?: string) => warnings.push(String(message)) }
  const verify = identityProvider({
    issuer: String(issuer.environment.AUTH_ISSUER),
    audience: AUDIENCE,
    clientIdClaim: undefined,
    keys: signingKeys({ url: String(issuer.environment.AUTH_JWKS_URL), log, ...times }).find,
  })
  return { issuer, verify, warnings }
}

/** Another token each time, so that none is remembered as verified. */
let serial = 0
function fresh(issuer: Issuer): Promise<string> {
  serial += 1
  return issuer.sign({ jti: String(serial) })
}

t.test('a new key is taken up, and tokens of the old one hold while it is published', async (t) => {
  const { issuer, verify } = await start(t, { cooldownMs: 0 })
  const old = await fresh(issuer)
  t.equal(await verify(old), 'client')
  await issuer.addKey('second')
  t.equal(await verify(await fresh(issuer)), 'client')
  t.equal(await verify(old), 'client')
  t.equal(issuer.fetches, 2)
})

t.test('a key that is withdrawn counts no longer once the keys are fetched again', async (t) => {
  const { issuer, verify } = await start(t, { cooldownMs: 0 })
  const old = await fresh(issuer)
  t.equal(await verify(await fresh(issuer)), 'client')
  issuer.keys.clear()
  await issuer.addKey('second')
  await verify(await fresh(issuer))
  await t.rejects(verify(old), InvalidToken)
})

t.test('made-up key ids cause no fetch while the cooldown lasts', async (t) => {
  const { issuer, verify } = await start(t, { cooldownMs: 60_000 })
  await verify(await fresh(issuer))
  for (let i = 0; i < 50; i += 1) {
    await t.rejects(verify(await issuer.sign({}, { kid: `made up ${i}` })), InvalidToken)
  }
  t.equal(issuer.fetches, 1)
})

t.test('many requests at once wait for one fetch', async (t) => {
  const { issuer, verify } = await start(t)
  const publish = issuer.answer
  issuer.answer = (response) => void sleep(100).then(() => publish(response))
  const tokens = await Promise.all(Array.from({ length: 100 }, () => fresh(issuer)))
  t.same(new Set(await Promise.all(tokens.map(verify))), new Set(['client']))
  t.equal(issuer.fetches, 1)
})

t.test('a provider that does not answer is given up, and is left alone for a while', async (t) => {
  const { issuer, verify, warnings } = await start(t, { timeoutMs: 100, retryMs: 60_000 })
  issuer.answer = () => {}
  const tokens = await Promise.all(Array.from({ length: 20 }, () => fresh(issuer)))
  const outcomes = await Promise.allSettled(tokens.map(verify))
  for (const outcome of outcomes) {
    t.ok(outcome.status === 'rejected' && outcome.reason instanceof IdentityProviderUnavailable)
  }
  await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable)
  t.equal(issuer.fetches, 1)
  t.equal(warnings.length, 1)
})

t.test('an answer that is no key set is an outage, not a verdict on the token', async (t) => {
  const answers: Record<string, Issuer['answer']> = {
    'an error': (response) => void response.writeHead(500).end(),
    'another address': (response) =>
      void response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
    'no JSON': (response) => void response.end('<html>'),
    'JSON of another kind': (response) => void response.end('{"keys":7}'),
    'too much of it': (response) => void response.end(`{"keys":[]${' '.repeat(300_000)}}`),
    'a broken line': (response) => void response.write('{"keys":', () => response.destroy()),
  }
  for (const [what, answer] of Object.entries(answers)) {
    await t.test(what, async (t) => {
      const { issuer, verify } = await start(t, { retryMs: 0, cooldownMs: 0 })
      const publish = issuer.answer
      issuer.answer = answer
      await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable)
      issuer.answer = publish
      t.equal(await verify(await fresh(issuer)), 'client', 'recovers')
      issuer.answer = answer
      t.equal(await verify(await fresh(issuer)), 'client', 'what is known goes on to serve')
      const strange = await issuer.sign({}, { kid: 'strange' })
      await t.rejects(verify(strange), IdentityProviderUnavailable)
    })
  }
})

t.test('an unusable key in the set is an outage for its tokens alone', async (t) => {
  const { issuer, verify } = await start(t)
  const good = await fresh(issuer)
  await issuer.addKey('broken')
  issuer.keys.set('broken', { kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA', kid: 'broken' })
  await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable)
  t.equal(await verify(good), 'client')
})

t.test('two keys that fit a token without a key id are none', async (t) => {
  const { issuer, verify } = await start(t)
  t.equal(await verify(await issuer.sign({}, { kid: undefined })), 'client')
  const { issuer: other, verify: verifyOther } = await start(t)
  await other.addKey('second')
  await t.rejects(verifyOther(await other.sign({}, { kid: undefined })), InvalidToken)
})

t.test('a key that was withdrawn while nobody asked is not taken any more', async (t) => {
  const { issuer, verify } = await start(t)
  const token = await fresh(issuer)
  await verify(await fresh(issuer))
  issuer.answer = (response) => response.end('{"keys":[]}')
  const anHourLater = Date.now() + 3_600_000
  t.capture(Date, 'now', () => anHourLater)
  await t.rejects(verify(token), InvalidToken)
})

t.test('while the provider is away, its keys serve for a day and no longer', async (t) => {
  const { issuer, verify } = await start(t)
  const began = Date.now()
  const hoursLater = (hours: number) => t.capture(Date, 'now', () => began + hours * 3_600_000)
  t.equal(await verify(await fresh(issuer)), 'client')
  await issuer.close()
  hoursLater(23.9)
  t.equal(await verify(await fresh(issuer)), 'client')
  hoursLater(24.1)
  await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable, 'an outage, and no 401')
  await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable, 'and not only once')
  await issuer.listen()
  hoursLater(24.2)
  t.equal(await verify(await fresh(issuer)), 'client', 'it recovers by itself')
})

t.test('old keys are fetched again in the background, and serve until then', async (t) => {
  const { issuer, verify } = await start(t, { refreshMs: -1 })
  await verify(await fresh(issuer))
  let waiting: (() => void) | undefined
  const publish = issuer.answer
  issuer.answer = (response) => {
    waiting = () => publish(response)
  }
  t.equal(await verify(await fresh(issuer)), 'client', 'nobody waits for the fetch')
  while (waiting === undefined) await sleep(1)
  t.equal(issuer.fetches, 2)
  waiting()
})
