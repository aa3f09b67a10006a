import { execFile } from 'node:child_process'
import { chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { notRoot } from '../processes/program.ts'

/** Makes a self-signed certificate for 127.0.0.1, in files of the account that runs servers. */
export async function makeCertificate(t: Test) {
  const { owner } = await notRoot()
  const folder = await mkdtemp(join(tmpdir(), 'tls-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [certificate, key] = [`${folder}/server.crt`, `${folder}/server.key`]
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  const options = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2']
  const files = ['-keyout', key, '-out', certificate]
  await promisify(execFile)('openssl', ['req', ...options, ...subject, ...files])
  if (owner) {
    for (const path of [folder, certificate, key]) await chown(path, owner.uid, owner.gid)
  }
  return { certificate, key }
}
