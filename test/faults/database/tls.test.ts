import t from 'tap'
import { openAsOwner } from '../../support/logins.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { makeCertificate } from '../support/servers/certificate.ts'
import { firstValue, migrateFor, startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { fillWorld, learn, questionsOf } from '../support/truth.ts'

/** A database that is reached through TLS, with a certificate that an authority of its own has signed. */
t.test('Answers that came through TLS are the same', async (t) => {
  const { certificate, key } = await makeCertificate(t)
  const server = await startDebianPostgres(t, {
    ssl: 'on',
    ssl_cert_file: certificate,
    ssl_key_file: key,
  })
  const login = await migrateFor(server.url)
  const questions = questionsOf(await fillWorld(openAsOwner(t, server.url), 3_000))
  const plain = await startServiceProcess(t, { DATABASE_URL: login })
  const known = await learn(plain.url, questions)
  await plain.end('SIGTERM')

  const verified = `${login}?sslmode=verify-full&sslrootcert=${encodeURIComponent(certificate)}`
  const secure = await startServiceProcess(t, { DATABASE_URL: verified })
  t.same(await learn(secure.url, questions), known)
  const encrypted = `select bool_and(ssl) from pg_stat_activity join pg_stat_ssl using (pid)
    where usename = 'investment_service'`
  t.equal(
    await firstValue(server.url, encrypted),
    true,
    'all of its connections, and there are some',
  )
  await secure.end('SIGTERM')

  const doubtful = await startServiceProcess(t, { DATABASE_URL: `${login}?sslmode=verify-full` })
  t.equal(await doubtful.ready(), 503, 'a certificate that nobody vouches for is refused')
  t.match(doubtful.said(), /self-signed certificate/)
})
