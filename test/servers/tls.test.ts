import { copyFile } from 'node:fs/promises'
import t from 'tap'
import { addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { openAsOwner } from '../support/logins.ts'
import { operatorHere } from '../support/operator-process.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { makeCertificate } from '../support/servers/certificate.ts'
import { firstValue, migrate, startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { until } from '../support/until.ts'

t.test('TLS to PostgreSQL: the responses are the same, unknown authorities get 503', async (t) => {
  const { certificate, key } = await makeCertificate(t)
  const server = await startDebianPostgres(t, {
    ssl: 'on',
    ssl_cert_file: certificate,
    ssl_key_file: key,
  })
  const login = await migrate(server.url)
  const requests = requestsOf(await addSampleData(openAsOwner(t, server.url), 3_000))
  const plain = await startServiceProcess(t, { DATABASE_URL: login })
  const golden = await recordOk(plain.url, requests)
  await plain.end('SIGTERM')

  const verified = `${login}?sslmode=verify-full&sslrootcert=${encodeURIComponent(certificate)}`
  const secure = await startServiceProcess(t, { DATABASE_URL: verified })
  t.same(await recordOk(secure.url, requests), golden)
  const encrypted = `select bool_and(ssl) from pg_stat_activity join pg_stat_ssl using (pid)
    where usename = 'investment_service'`
  t.equal(await firstValue(server.url, encrypted), true, 'each of its connections is encrypted')

  const renewed = await makeCertificate(t)
  await copyFile(renewed.key, key)
  await copyFile(renewed.certificate, certificate)
  const oldest = `select min(backend_start)::text from pg_stat_activity
    where usename = 'investment_service'`
  const before = await firstValue(server.url, oldest)
  await firstValue(server.url, 'select pg_reload_conf()')
  secure.process.kill('SIGHUP')
  await until('new connections replace all others', async () => {
    return (await firstValue(server.url, oldest)) !== before
  })
  t.same(await recordOk(secure.url, requests), golden)
  t.equal(await firstValue(server.url, encrypted), true)
  await secure.end('SIGTERM')

  const unverified = await startServiceProcess(t, { DATABASE_URL: `${login}?sslmode=verify-full` })
  t.equal(await unverified.ready(), 503)
  const advice = 'self-signed certificate: sslrootcert in'
  const reason = `${advice} the URL must name the file of its authority`
  await until('the log has the reason', () => unverified.output().includes(reason))
  const DATABASE_URL = `${server.url}?sslmode=verify-full`
  const { code, stderr } = await operatorHere(['app', 'list'], { DATABASE_URL })
  t.equal(code, 1)
  t.match(
    stderr,
    `The certificate of PostgreSQL cannot be verified (${advice} DATABASE_URL must name`,
  )
})
