/** What each client makes of each fault: the error, and how often it repeats the request. */
import { readFile } from 'node:fs/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import t from 'tap'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { failureOf, startDrivers } from '../support/clients/drivers.ts'
import { type Fault, startFaultProxy } from '../support/clients/fault-proxy.ts'
import { accessOf } from '../support/clients/service.ts'
import { addCaller, lists } from '../support/rows.ts'
import { makeCertificate } from '../support/servers/certificate.ts'
import { startService } from '../support/service.ts'

interface Expected {
  /** Attempts of three. */
  attempts: 1 | 3
  error: Record<string, unknown>
  timeoutMs?: number
}

const SENTENCES = {
  timeout: 'No complete response arrived in time',
  incomplete_body: 'The response is incomplete',
  unexpected_response: 'The response is not from the service',
}

const transport = (code: keyof typeof SENTENCES, status?: number) => {
  const isStatus = code === 'unexpected_response' && status !== undefined
  const message = isStatus ? `Status ${status} is not from the service` : SENTENCES[code]
  return { name: 'TransportError', code, message, ...(status === undefined ? {} : { status }) }
}
const problem = (name: string, status: number, code: string) => {
  const names = [...(name === 'ProblemError' ? [] : [name]), 'ProblemError', 'InvestmentDataError']
  return {
    name,
    names,
    code,
    status,
    retryAfterMs: 0,
    requestId: /^[\da-f-]{36}$/,
  }
}

const TABLE: Record<Exclude<Fault, 'none' | 'hang up'>, Expected> = {
  unauthorized: { attempts: 1, error: problem('AuthenticationError', 401, 'invalid_token') },
  expired: { attempts: 1, error: problem('CursorExpiredError', 410, 'cursor_expired') },
  quota: { attempts: 3, error: problem('QuotaError', 429, 'too_many_requests') },
  unavailable: { attempts: 3, error: problem('ProblemError', 503, 'service_unavailable') },
  page: { attempts: 1, error: transport('unexpected_response', 404) },
  redirect: { attempts: 1, error: transport('unexpected_response', 302) },
  'bad gateway': { attempts: 3, error: transport('unexpected_response', 502) },
  'gateway timeout': { attempts: 3, error: transport('unexpected_response', 504) },
  reset: { attempts: 3, error: { code: /^(ECONNRESET|UND_ERR_SOCKET)$/ } },
  'cut headers': { attempts: 3, error: { code: /^(ECONNRESET|UND_ERR_SOCKET)$/ } },
  cut: { attempts: 3, error: transport('incomplete_body', 200) },
  silent: { attempts: 3, error: transport('timeout'), timeoutMs: 300 },
  'dripped headers': { attempts: 3, error: transport('timeout'), timeoutMs: 300 },
  'dripped body': { attempts: 3, error: transport('timeout', 200), timeoutMs: 600 },
  short: { attempts: 3, error: transport('incomplete_body', 200) },
  stall: { attempts: 3, error: transport('timeout', 200), timeoutMs: 1500 },
  'not HTTP': { attempts: 1, error: transport('unexpected_response') },
}

const service = await startService(t)
const caller = await addCaller(service.db)
await lists.account.add(service.db, caller.connection, {}, {}, {})
const { certificate, key } = await makeCertificate(t)
const tls = { cert: await readFile(certificate), key: await readFile(key) }

for (const [language, client] of Object.entries(startDrivers(t))) {
  for (const [name, { attempts, error, timeoutMs = 20_000 }] of Object.entries(TABLE)) {
    t.test(`${language}, ${name}: ${attempts} of 3 attempts`, async (t) => {
      const elsewhere = await startFaultProxy(t, { target: service.url, fault: () => 'none' })
      const fault = () => name as Fault
      const proxy = await startFaultProxy(t, {
        target: service.url,
        fault,
        location: elsewhere.url,
      })
      const access = { ...accessOf(proxy, caller), attempts: 3, timeoutMs }
      const found = await failureOf(client.orders(access))
      const { names = [], ...rest } = error
      t.strictSame(found.names.slice(0, (names as string[]).length), names)
      t.match(found, { ...rest, attempts, traceId: String(proxy.headers['x-client-trace-id']) })
      t.same(proxy.counts, { [name]: attempts })
      t.match(
        client.seen.attempts.map(({ attempt, code }) => ({ attempt, code })),
        Array.from({ length: attempts }, (_, index) => ({ attempt: index + 1, code: found.code })),
      )
      t.same(elsewhere.counts, {}, 'no request to another server')
      for (const secret of [caller.token, caller.connection.token])
        t.notOk((found.shown + JSON.stringify(client.seen)).includes(secret))
    })
  }

  t.test(`${language}: Retry-After beyond the maximum: in the error, without a wait`, async (t) => {
    for (const [fault, name] of [
      ['unavailable', 'ProblemError'],
      ['quota', 'QuotaError'],
    ] as const) {
      const options = { target: service.url, fault: () => fault, retryAfter: '3600' }
      const proxy = await startFaultProxy(t, options)
      // A client that ignores this maximum waits for a second and sends the request again, which the counts show.
      const access = { ...accessOf(proxy, caller), maxDelayMs: 1_000 }
      const found = await failureOf(client.orders(access))
      t.match(found, { name, retryAfterMs: 3_600_000, headers: { 'retry-after': '3600' } })
      t.same(proxy.counts, { [fault]: 1 })
    }
  })

  t.test(`${language}: an unknown host is not tried again`, async (t) => {
    // Too long, so no name server is asked: one part of the name, and the whole name.
    for (const [host, code] of [
      ['a'.repeat(64), 'ENOTFOUND'],
      ['a.'.repeat(150), /^(ENOTFOUND|EINVAL)$/],
    ] as const) {
      const access = { ...accessOf(service, caller), url: `http://${host}invalid` }
      const found = await failureOf(client.orders(access))
      t.match(found, { code, attempts: 1 })
      if (found.code === 'ENOTFOUND') t.equal(found.message, 'The host of the service is unknown')
    }
  })

  t.test(`${language}: TLS to a port without TLS is not tried again`, async (t) => {
    const url = service.url.replace('http:', 'https:')
    t.match(await failureOf(client.orders({ ...accessOf(service, caller), url })), {
      code: 'no_tls',
      message: 'The port does not speak TLS: use http, or another port',
      attempts: 1,
    })
  })

  t.test(`${language}: an unknown certificate is not tried again`, async (t) => {
    const proxy = await startFaultProxy(t, { target: service.url, fault: () => 'none', tls })
    const access = accessOf(proxy, caller)
    t.match(await failureOf(client.orders(access)), {
      code: /DEPTH_ZERO_SELF_SIGNED_CERT|CERTIFICATE_VERIFY_FAILED/,
      attempts: 1,
    })
  })

  t.test(
    `${language}: TLS: one connection, a cut body and the time limit as without`,
    async (t) => {
      const fault = (n: number) => (['none', 'cut', 'none', 'none'] as const)[n] ?? 'dripped body'
      const proxy = await startFaultProxy(t, { target: service.url, fault, tls })
      const access = { ...accessOf(proxy, caller), certificate, pageSize: 1 }
      const trusted = getCACertificates('default')
      setDefaultCACertificates([...trusted, tls.cert.toString()])
      t.teardown(() => setDefaultCACertificates(trusted))
      t.equal((await client.list(access, 'account')).length, 3)
      t.ok(proxy.connections <= 3, `${proxy.connections} connections`)
      const short = { ...access, timeoutMs: 500, attempts: 1 }
      t.match(await failureOf(client.orders(short)), { code: 'timeout', status: 200 })
    },
  )

  t.test(`${language}: nothing listens: tried again`, async (t) => {
    const access = {
      ...accessOf(service, caller),
      url: `http://127.0.0.1:${await freePort()}`,
      attempts: 2,
    }
    const message = 'No server listens at the address of the service'
    t.match(await failureOf(client.orders(access)), { code: 'ECONNREFUSED', attempts: 2, message })
  })
}
