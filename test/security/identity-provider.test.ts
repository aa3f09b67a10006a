import { createHmac } from 'node:crypto'
import { mock } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, importJWK, type JWK } from 'jose'
import { Registry } from 'prom-client'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { IdentityProviderUnavailable, identityProvider } from '../../src/http/identity-provider.ts'
import { type Issuer, startIssuer } from '../support/issuer.ts'
import { operatorHere } from '../support/operator-process.ts'
import { addApp, addConnection } from '../support/rows.ts'
import { type Service, startService } from '../support/service.ts'
import { until } from '../support/until.ts'

/** Starts a service that accepts the tokens of an issuer, and adds an app with the client id `client`. */
async function start(t: Test, environment: Record<string, string> = {}) {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  const service = await startService(t, { environment: { ...issuer.environment, ...environment } })
  const connection = await addConnection(
    service.db,
    await addApp(service.db, { client_id: 'client' }),
  )
  return { issuer, service, connection }
}

async function rejected(t: Test, service: Service, path: string, token: string, code: string) {
  const response = await service.get(path, { token })
  t.equal(response.status, 401)
  t.equal(response.json().code, code)
  t.equal(
    response.headers.get('www-authenticate'),
    'Bearer realm="investment data", error="invalid_token"',
  )
}

function base64url(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Creates a token with valid claims, and with the header and signature of an attacker. */
async function forged(issuer: Issuer, header: object, sign: (input: string) => string) {
  const payload = String((await issuer.sign()).split('.')[1])
  const input = `${base64url(header)}.${payload}`
  return `${input}.${sign(input)}`
}

t.test('200: a token of the provider gives access as the app with its client id', async (t) => {
  const { issuer, service, connection } = await start(t)
  const other = await addConnection(service.db, await addApp(service.db))

  t.equal((await service.get(connection.orders, { token: await issuer.sign() })).status, 200)
  const asAzp = await issuer.sign({ client_id: undefined, azp: 'client' })
  t.equal((await service.get(connection.orders, { token: asAzp })).status, 200)
  const manyAudiences = await issuer.sign({ aud: ['urn:other', 'urn:test:service'] })
  t.equal((await service.get(connection.orders, { token: manyAudiences })).status, 200)
  const foreign = await service.get(other.orders, { token: await issuer.sign() })
  t.equal(foreign.status, 404, "404: another app's connection")
  const faulty = await service.get(`${connection.orders}?x=1`, { token: await issuer.sign() })
  t.equal(faulty.status, 400)
  t.equal(issuer.fetches, 1, 'the keys were fetched once')
  t.notMatch(service.log.join(''), await issuer.sign().then((token) => token.split('.')[0]))
})

t.test('200: every asymmetric algorithm and type of access token', async (t) => {
  const { issuer, service, connection } = await start(t)
  const tokens: string[] = []
  const others = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
  for (const alg of ['ES384', 'ES512', 'EdDSA', 'Ed25519', ...others]) {
    await issuer.addKey(alg, alg)
    tokens.push(await issuer.sign())
  }
  for (const typ of ['at+jwt', 'application/at+jwt', 'JWT', 'application/jwt', undefined]) {
    tokens.push(await issuer.sign({}, { typ }))
  }
  for (const token of tokens) {
    t.equal((await service.get(connection.orders, { token })).status, 200)
  }
})

t.test('401: a token of the provider with a wrong claim', async (t) => {
  const { issuer, service, connection } = await start(t)
  const now = Math.floor(Date.now() / 1000)
  const wrong = {
    'another issuer': { iss: 'https://elsewhere.example' },
    'no issuer': { iss: undefined },
    'another audience': { aud: 'urn:other' },
    'no audience': { aud: undefined },
    'not yet valid': { nbf: now + 120 },
    'never expires': { exp: undefined },
    'no client id': { client_id: undefined },
    'a client id that is no text': { client_id: 7 },
    'an empty client id': { client_id: '' },
    'a client id that no app can have': { client_id: 'x'.repeat(4_000) },
    'a client id with a NUL': { client_id: 'cli\0ent' },
    'a client id that no app has': { client_id: 'stranger' },
    'an id token': { at_hash: 'x' },
    'an id token of a code flow': { c_hash: 'x' },
    'a logout token': { events: {} },
    'a token bound to a key of the client': { cnf: { jkt: 'x' } },
  }
  for (const [what, claims] of Object.entries(wrong)) {
    await t.test(what, async (t) =>
      rejected(t, service, connection.orders, await issuer.sign(claims), 'invalid_token'),
    )
  }
  await t.test('another type', async (t) =>
    rejected(
      t,
      service,
      connection.orders,
      await issuer.sign({}, { typ: 'logout+jwt' }),
      'invalid_token',
    ),
  )
  await t.test('expired', async (t) => {
    const expired = await issuer.sign({ exp: now - 10 })
    await rejected(t, service, connection.orders, expired, 'expired_token')
  })
  const skewed = await issuer.sign({ exp: now - 2, nbf: now + 2 })
  t.equal((await service.get(connection.orders, { token: skewed })).status, 200, 'clocks differ')
})

t.test('401: a forged token', async (t) => {
  const { issuer, service, connection } = await start(t)
  const own = await generateKeyPair('ES256', { extractable: true })
  const ownJwk = await exportJWK(own.publicKey)
  const published = (await importJWK(issuer.keys.get('first') as JWK, 'ES256')) as CryptoKey
  const secrets = {
    pem: await exportSPKI(published),
    jwk: JSON.stringify(issuer.keys.get('first')),
  }
  const hmac = (secret: string) => (input: string) =>
    createHmac('sha256', secret).update(input).digest('base64url')
  const [head, body, signature] = (await issuer.sign()).split('.')
  const tokens = {
    'no algorithm': await forged(issuer, { alg: 'none', kid: 'first' }, () => ''),
    'no algorithm, in other letters': await forged(issuer, { alg: 'nOnE' }, () => 'AA'),
    'the public key as a secret': await forged(
      issuer,
      { alg: 'HS256', kid: 'first' },
      hmac(secrets.pem),
    ),
    'the published key as a secret': await forged(
      issuer,
      { alg: 'HS256', kid: 'first' },
      hmac(secrets.jwk),
    ),
    'a key of its own': await issuer.sign({}, {}, own.privateKey),
    'a key within the token': await issuer.sign({}, { jwk: ownJwk }, own.privateKey),
    'a key at another address': await issuer.sign(
      {},
      { jku: 'http://127.0.0.1:9/keys' },
      own.privateKey,
    ),
    'a key id that leads elsewhere': await issuer.sign(
      {},
      { kid: '../../dev/null' },
      own.privateKey,
    ),
    'a key id that is no text': await forged(issuer, { alg: 'ES256', kid: { a: 1 } }, () => 'AA'),
    'an algorithm that the key is not for': await forged(
      issuer,
      { alg: 'RS256', kid: 'first' },
      () => 'AA',
    ),
    'a header that is critical and unknown': await forged(
      issuer,
      { alg: 'ES256', kid: 'first', crit: ['x'], x: 1 },
      () => String(signature),
    ),
    'a signature cut off': `${head}.${body}.`,
    'a signature of something else': `${head}.${base64url({ sub: 'x' })}.${signature}`,
    'a header that is no JSON': `AAAA.${body}.${signature}`,
    'only dots': 'a.b.c',
  }
  for (const [what, token] of Object.entries(tokens)) {
    await t.test(what, async (t) => rejected(t, service, connection.orders, token, 'invalid_token'))
  }
})

t.test('401: an algorithm of a published key that the documents do not list', async (t) => {
  const { issuer, service, connection } = await start(t)
  for (const alg of ['ML-DSA-44', 'ML-DSA-87']) {
    await issuer.addKey(alg, alg)
    await rejected(t, service, connection.orders, await issuer.sign(), 'invalid_token')
  }
  const secret = Buffer.alloc(32, 's')
  issuer.keys.set('secret', {
    kty: 'oct',
    k: secret.toString('base64url'),
    kid: 'secret',
    alg: 'HS256',
  })
  const symmetric = await forged(issuer, { alg: 'HS256', kid: 'secret' }, (input) =>
    createHmac('sha256', secret).update(input).digest('base64url'),
  )
  await rejected(t, service, connection.orders, symmetric, 'invalid_token')
})

t.test('401 expired_token: a token that the service has accepted before', async (t) => {
  const { issuer, service, connection } = await start(t)
  // The service accepts 10 s of difference between the clocks.
  const began = Date.now()
  const token = await issuer.sign({ exp: Math.floor(began / 1000) + 100 })
  t.equal((await service.get(connection.orders, { token })).status, 200)
  mock.timers.enable({ apis: ['Date'], now: began + 109_000 })
  t.teardown(() => mock.timers.reset())
  t.equal((await service.get(connection.orders, { token })).status, 200)
  mock.timers.tick(2_000)
  await rejected(t, service, connection.orders, token, 'expired_token')
})

t.test('401: a token whose key was withdrawn a minute ago', async (t) => {
  const { issuer, service, connection } = await start(t)
  const token = await issuer.sign({ exp: Math.floor(Date.now() / 1000) + 7_200 })
  t.equal((await service.get(connection.orders, { token })).status, 200)
  issuer.keys.clear()
  await issuer.addKey('second')
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  // The unknown key id makes the service fetch the keys, at most every 10 s.
  Date.now = () => now() + 11_000
  t.equal((await service.get(connection.orders, { token: await issuer.sign() })).status, 200)
  Date.now = () => now() + 61_000
  await rejected(t, service, connection.orders, token, 'invalid_token')
})

t.test('AUTH_CLIENT_ID_CLAIM: names the claim with the client id', async (t) => {
  const { issuer, service, connection } = await start(t, { AUTH_CLIENT_ID_CLAIM: 'app' })
  const named = await issuer.sign({ client_id: 'stranger', app: 'client' })
  t.equal((await service.get(connection.orders, { token: named })).status, 200)
  await rejected(t, service, connection.orders, await issuer.sign(), 'invalid_token')
})

t.test('changed client id of an app: takes effect with the next request', async (t) => {
  const { issuer, service, connection } = await start(t)
  const token = await issuer.sign()
  const other = await addConnection(service.db, await addApp(service.db, { name: 'other' }))
  const [{ name }] = (await service.db
    .selectFrom('app')
    .select('name')
    .where('client_id', '=', 'client')
    .execute()) as [{ name: string }]
  const call = (...args: string[]) =>
    operatorHere(['app', 'set-client-id', ...args], { DATABASE_URL: service.databaseUrl })
  const statuses = async () => {
    const paths = [connection.orders, other.orders]
    return (await Promise.all(paths.map((path) => service.get(path, { token })))).map(
      ({ status }) => status,
    )
  }
  t.same(await statuses(), [200, 404])
  t.match(await call('other', 'client'), {
    code: 1,
    stderr: 'Another app already has the client id client.\n',
  })
  t.match(await call(name, '--none'), {
    code: 0,
    stdout: `The app ${name} has no client id from now on.\n`,
  })
  await rejected(t, service, connection.orders, token, 'invalid_token')
  t.match(await call('other', 'client'), {
    code: 0,
    stdout: 'The app other has the client id client from now on.\n',
  })
  t.same(await statuses(), [404, 200])
  t.match((await call('other', 'another', '--json')).json(), { name: 'other', clientId: 'another' })
  await rejected(t, service, other.orders, token, 'invalid_token')
})

t.test('401: a signed token without a configured provider', async (t) => {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  const service = await startService(t)
  const appId = await addApp(service.db, { client_id: 'client' })
  const connection = await addConnection(service.db, appId)
  await rejected(t, service, connection.orders, await issuer.sign(), 'invalid_token')
  t.equal(issuer.fetches, 0)
})

t.test('503: the provider is unreachable on the first use of its keys', async (t) => {
  const { issuer, service, connection } = await start(t)
  const token = await issuer.sign()
  await issuer.close()
  const response = await service.get(connection.orders, { token })
  t.equal(response.status, 503)
  t.equal(response.json().code, 'service_unavailable')
  t.equal(response.headers.get('retry-after'), '1')

  await issuer.listen()
  let status = 503
  await until('the service has the keys', async () => {
    status = (await service.get(connection.orders, { token })).status
    return status !== 503
  })
  t.equal(status, 200, 'recovers without a restart')
  await issuer.close()
  const second = await issuer.sign({ jti: 'second' })
  t.equal(
    (await service.get(connection.orders, { token: second })).status,
    200,
    'known keys remain in use',
  )
})

t.test('signing keys', async (t) => {
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
    const clocks = [Date, performance].map((clock) => ({ clock, began: Math.ceil(clock.now()) }))
    const set = (ms: number) => {
      for (const { clock, began } of clocks) t.capture(clock, 'now', () => began + ms)
    }
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

  t.test(
    'clock that steps back after a failed fetch: the next one is a second later',
    async (t) => {
      const { issuer, verify } = await start(t)
      const setClock = stopClock(t)
      const [token, earlier] = [await fresh(issuer), Date.now() - 3_600_000]
      const publish = issuer.respond
      issuer.respond = (response) => response.writeHead(500).end()
      await t.rejects(verify(await fresh(issuer)), IdentityProviderUnavailable)
      issuer.respond = publish
      setClock(1_000)
      t.capture(Date, 'now', () => earlier)
      t.equal(await verify(token), 'client')
    },
  )

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
    const setClock = stopClock(t)
    const hoursLater = (hours: number) => setClock(hours * 3_600_000)
    t.equal(await verify(await fresh(issuer)), 'client')
    await issuer.close()
    hoursLater(23.9)
    t.equal(await verify(await fresh(issuer)), 'client')
    hoursLater(24.1)
    await t.rejects(
      verify(await fresh(issuer)),
      IdentityProviderUnavailable,
      'an outage, not a 401',
    )
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
})
