import t from 'tap'
import { readConfig } from '../../src/config.ts'

const provider = {
  AUTH_ISSUER: 'https://id.example',
  AUTH_AUDIENCE: 'urn:service',
  AUTH_JWKS_URL: 'https://id.example/keys',
}

t.test('identity provider: its settings must be set together', async (t) => {
  t.ok(readConfig(provider))
  t.throws(() => readConfig({ AUTH_ISSUER: 'https://id.example' }), {
    message: 'AUTH_AUDIENCE and AUTH_JWKS_URL must be set too, because AUTH_ISSUER is set',
  })
  t.throws(() => readConfig({ AUTH_CLIENT_ID_CLAIM: 'app' }), { message: /AUTH_ISSUER and/ })
  t.throws(() => readConfig({ ...provider, AUTH_AUDIENCE: '' }), { message: /AUTH_AUDIENCE must/ })
})

t.test('AUTH_JWKS_URL: https, or this machine', async (t) => {
  for (const url of ['http://localhost:1/k', 'http://127.0.0.1:1/k', 'http://[::1]:1/k']) {
    t.ok(readConfig({ ...provider, AUTH_JWKS_URL: url }), url)
  }
  for (const url of ['http://id.example/k', 'http://127.0.0.1.example/k', 'https://', 'ftp://a/']) {
    t.throws(() => readConfig({ ...provider, AUTH_JWKS_URL: url }), { message: /AUTH_JWKS_URL/ })
  }
})

t.test('several invalid settings: one error lists all', async (t) => {
  t.throws(() => readConfig({ PORT: '-1', AUTH_ISSUER: 'x', AUTH_JWKS_URL: 'http://a.example' }), {
    message: /PORT.*\n.*AUTH_AUDIENCE must be set.*\n.*AUTH_JWKS_URL must be an https/,
  })
})
