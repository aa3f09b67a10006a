import { execFile } from 'node:child_process'
import { chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { openAsOwner } from '../logins.ts'
import { firstValue, migrateFor, startDebianPostgres } from './debian-postgres.ts'
import { notRoot } from './program.ts'
import { startServiceProcess } from './service-process.ts'
import { fillWorld, learn, questionsOf } from './truth.ts'

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

/** For 127.0.0.1, in files that the server's account owns. */
async function makeCertificate(t: Test) {
  const { owner } = await notRoot()
  const folder = await mkdtemp(join(tmpdir(), 'tls-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [certificate, key] = [`${folder}/server.crt`, `${folder}/server.key`]
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  const form = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2']
  const files = ['-keyout', key, '-out', certificate]
  await promisify(execFile)('openssl', ['req', ...form, ...subject, ...files])
  if (owner) {
    for (const path of [folder, certificate, key]) await chown(path, owner.uid, owner.gid)
  }
  return { certificate, key }
}
