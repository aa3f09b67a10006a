import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { readConfig, settings, settingWarnings } from '../../src/config.ts'
import { readSecretFiles } from '../../src/env-file.ts'
import { OperatorError } from '../../src/operator-error.ts'
import { createDatabase } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const provider = {
  AUTH_ISSUER: 'https://id.example',
  AUTH_AUDIENCE: 'urn:service',
  AUTH_JWKS_URL: 'https://id.example/keys',
}

t.test('each setting: some code reads it', (t) => {
  const files = globSync('src/**/*.ts').filter((path) => path !== 'src/config.ts')
  const code = files.map((file) => readFileSync(file, 'utf8')).join()
  const unread = Object.keys(settings).filter((name) => !new RegExp(`\\b${name}\\b`).test(code))
  t.same(unread, [])
  t.end()
})

t.test('identity provider: its settings must be set together', async (t) => {
  t.ok(readConfig(provider))
  const message = 'AUTH_ISSUER, AUTH_AUDIENCE and AUTH_JWKS_URL must be set together'
  for (const name of Object.keys(provider)) {
    t.throws(() => readConfig({ ...provider, [name]: '' }), { message })
    t.throws(() => readConfig({ [name]: provider[name as keyof typeof provider] }), { message })
  }
})

t.test('AUTH_JWKS_URL: https, or this machine', async (t) => {
  for (const url of ['http://localhost:1/k', 'http://127.0.0.1:1/k', 'http://[::1]:1/k']) {
    t.ok(readConfig({ ...provider, AUTH_JWKS_URL: url }), url)
  }
  for (const url of ['http://id.example/k', 'http://127.0.0.1.example/k', 'https://', 'ftp://a/']) {
    t.throws(() => readConfig({ ...provider, AUTH_JWKS_URL: url }), { message: /AUTH_JWKS_URL/ })
  }
})

t.test('TRUSTED_PROXIES: addresses and networks, not a number of proxies', async (t) => {
  for (const list of ['10.0.0.1', '10.0.0.1, 10.1.0.0/16', '::1,fd00::/8', '10.0.0.1/32', '::/128'])
    t.ok(readConfig({ TRUSTED_PROXIES: list }), list)
  const invalid = ['1', 'true', '10/8', 'loopback', '10.0.0.1,', '10.0.0.1/', ',', '10.0.0.0/0']
  for (const list of [...invalid, '10.0.0.0/33', '10.0.0.0/255.0.0.0', '::1,fd00::/129', '/8'])
    t.throws(() => readConfig({ TRUSTED_PROXIES: list }), { message: /^TRUSTED_PROXIES must/ })
})

t.test('several invalid settings: one error lists all', async (t) => {
  t.throws(() => readConfig({ PORT: '-1', AUTH_ISSUER: 'x', AUTH_JWKS_URL: 'http://a.example' }), {
    message: /PORT.*\nAUTH_JWKS_URL must be a URL.*\nAUTH_ISSUER, AUTH_AUDIENCE and/,
  })
})

t.test('PUBLIC_URL and CONTACT_URL: URLs without secrets', async (t) => {
  const valid = {
    PUBLIC_URL: 'https://api.example/investments/',
    CONTACT_URL: 'https://a.example/?id=1#b',
  }
  t.match(readConfig(valid), valid)
  const invalid = [
    'api.example',
    'ftp://api.example',
    'https://',
    'https://u:S3cret@a.example',
    'https://a.example:x',
  ]
  for (const url of invalid) {
    for (const name of Object.keys(valid)) {
      const [error, ...others] = errorsOf(t, { [name]: url })
      t.match(error, `${name} must be a URL like https://HOST/PATH, without`, url)
      t.strictSame(others, [])
    }
  }
  for (const end of ['{tenant}', '?version=1', '#top'])
    t.match(
      errorsOf(t, { PUBLIC_URL: `https://api.example/${end}` }),
      withLengths([/^PUBLIC_URL must be/]),
    )
})

const PASSWORD = 'S3cret'

/** Returns the lines of the error, which must have no password. */
function errorsOf(t: Test, environment: Record<string, string>): string[] {
  try {
    readConfig(environment)
  } catch (error) {
    const { message, stack } = error as Error
    t.notMatch(stack, PASSWORD, Object.keys(environment).join())
    return message.split('\n')
  }
  return []
}

t.test('DATABASE_URL and DATABASE_REPLICA_URL that pg cannot use: one sentence', async (t) => {
  const login = `postgres://service:${PASSWORD}`
  const invalid = [
    `${login}@127.0.0.1:99999/db`,
    `${login}@127.0.0.1:0/db`,
    `${login}@[::1:5432/db`,
    `${login}@db.example:notaport/db`,
    `${login}@one.example,two.example:99999/db`,
    `${login}@one.example/db,${login}@two.example:99999/db`,
    `${login}/2@db.example/db`,
    `postgres:///db?user=service&password=${PASSWORD}&host=one.example,two.example`,
    `mysql://service:${PASSWORD}@db.example/db`,
    `db.example password=${PASSWORD}`,
  ]
  for (const name of ['DATABASE_URL', 'DATABASE_REPLICA_URL']) {
    for (const url of invalid) {
      const start = `${name} must be a URL like postgres://USER:PASSWORD@HOST:5432/DATABASE`
      const errors = errorsOf(t, { [name]: url })
      t.match(errors, withLengths([start]), url)
    }
    t.match(
      errorsOf(t, { [name]: `${login}@db.example/db?sslrootcert=/none/ca.pem` }),
      withLengths([`${name} names a file that cannot be read: ENOENT`]),
    )
  }
  const standby = `${login}@db.example/db?target_session_attrs=standby`
  t.same(errorsOf(t, { DATABASE_URL: standby, DATABASE_REPLICA_URL: standby }), [
    'DATABASE_URL has an unknown target_session_attrs: use one of read-write, primary, any',
  ])
  const valid = [
    `${login}@db.example/db?sslmode=verify-full&target_session_attrs=any`,
    `${login}@one.example,[::1]:5433,10.0.0.1:5434/db?target_session_attrs=read-write`,
    `${login}%2F2@db.example:5432/db`,
    'postgres:///db',
    'postgres://service@/db?host=/var/run/postgresql',
    'postgres://%2Fvar%2Frun%2Fpostgresql/db',
  ]
  for (const url of valid) t.same(errorsOf(t, { DATABASE_URL: url }), [], url)
})

t.test('parameters of a URL: obeyed, harmless, or refused with their name', async (t) => {
  const errors = (query: string) =>
    errorsOf(t, { DATABASE_URL: `postgres://u:${PASSWORD}@db.example/db?${query}` })
  const accepted = [
    'channel_binding=prefer&connect_timeout=10&keepalives_idle=30&gssencmode=disable',
    'application_name=service&sslmode=verify-full&sslnegotiation=direct',
    'ssl_min_protocol_version=TLSv1.2&client_encoding=UTF8',
  ]
  for (const query of accepted) t.same(errors(query), [], query)
  const refused: Record<string, RegExp> = {
    'channel_binding=require':
      /^DATABASE_URL has channel_binding, .* obeyed: use sslmode=verify-full/,
    'channel%5fbinding=require': /^DATABASE_URL has channel_binding, /,
    'require_auth=scram-sha-256': /^DATABASE_URL has require_auth, /,
    'constructor=1': /^DATABASE_URL has constructor, .* obeyed: remove it$/,
    'sslrootcert=system': /^DATABASE_URL has sslrootcert=system, .* authorities of Node\.js$/,
    'sslcrl=/etc/crl.pem': /^DATABASE_URL has sslcrl, which cannot be obeyed: remove it$/,
    'ssl_min_protocol_version=TLSv1.3': /^DATABASE_URL has ssl_min_protocol_version, /,
    'requiressl=1': /^DATABASE_URL has requiressl, /,
    'sslmode=verify-full&sslmode=disable': /^DATABASE_URL has sslmode twice$/,
    'dbname=other': /^DATABASE_URL has dbname, .* path of the URL$/,
    'hostaddr=10.0.0.1': /^DATABASE_URL has hostaddr, /,
    'load_balance_hosts=random': /^DATABASE_URL has load_balance_hosts, /,
    'statement_timeout=0': /^DATABASE_URL has statement_timeout, /,
    'SSLMODE=verify-full': /^DATABASE_URL has SSLMODE, /,
    [`${PASSWORD}=1`]: /^DATABASE_URL has a parameter, /,
  }
  for (const [query, message] of Object.entries(refused))
    t.match(errors(query), withLengths([message]), query)
})

t.test('variables of libpq: obeyed, harmless, or refused with their name', async (t) => {
  const errors = (variables: Record<string, string>, query = '') => {
    const DATABASE_URL = `postgres://u:${PASSWORD}@db.example/db${query}`
    return errorsOf(t, { ...variables, DATABASE_URL })
  }
  const accepted = [
    { PGCHANNELBINDING: 'prefer', PGREQUIREAUTH: '', PGGSSENCMODE: 'disable' },
    { PGSSLMODE: 'verify-full', PGCONNECT_TIMEOUT: '5', PGTZ: 'UTC', PGDATESTYLE: 'ISO' },
    { PGTARGETSESSIONATTRS: 'read-write', PGSSLSNI: '1', PGSSLMINPROTOCOLVERSION: 'TLSv1.2' },
  ]
  for (const variables of accepted) t.same(errors(variables), [], JSON.stringify(variables))
  const refused: Record<string, RegExp> = {
    'PGCHANNELBINDING=require':
      /^DATABASE_URL cannot obey PGCHANNELBINDING of the environment: use sslmode=verify-full/,
    'PGREQUIREAUTH=scram-sha-256': /^DATABASE_URL cannot obey PGREQUIREAUTH of /,
    'PGSSLROOTCERT=/etc/ca.pem': /PGSSLROOTCERT of .*: write sslrootcert into the URL$/,
    'PGSSLCRL=/etc/crl.pem': /^DATABASE_URL cannot obey PGSSLCRL of the environment: remove it$/,
    'PGSERVICE=investments': /PGSERVICE of .*: write its parameters into the URL$/,
    'PGTARGETSESSIONATTRS=standby': /PGTARGETSESSIONATTRS of /,
    'PGSSLMODE=verify_full': /PGSSLMODE of the environment: use one of disable, /,
  }
  for (const [variable, message] of Object.entries(refused)) {
    const [name = '', value = ''] = variable.split('=')
    t.match(errors({ [name]: value }), withLengths([message]), variable)
  }
  t.same(errors({ PGSSLROOTCERT: '/etc/ca.pem' }, '?sslrootcert=README.md'), [], 'the URL counts')
})

t.test('other URLs that cannot be used: one sentence', async (t) => {
  const cases = {
    REDIS_URL: [
      `redis://:${PASSWORD}@db.example:99999`,
      `http://:${PASSWORD}@db.example`,
      `xredis://:${PASSWORD}@db.example`,
    ],
    OTEL_EXPORTER_OTLP_ENDPOINT: [
      `http://u:${PASSWORD}@otel.example:99999`,
      'otel.example:4318',
      'xhttp://otel.example:4318',
    ],
  }
  for (const [name, urls] of Object.entries(cases)) {
    for (const url of urls) {
      const errors = errorsOf(t, { [name]: url })
      t.match(errors, withLengths([`${name} must be a URL like`]), url)
    }
  }
  for (const login of [`user:${PASSWORD}`, `:${PASSWORD}`, 'user'])
    t.same(
      errorsOf(t, { ...provider, AUTH_JWKS_URL: `https://${login}@id.example/keys` }),
      [
        'AUTH_JWKS_URL must be a URL like https://HOST/PATH, or http:// on this machine, without user or password',
      ],
      login,
    )
  t.same(errorsOf(t, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://otel.example:4317' }), [])
  t.same(errorsOf(t, { REDIS_URL: `rediss://:${PASSWORD}@db.example` }), [])
})

t.test('a value outside of a list: one sentence with the allowed values', async (t) => {
  t.same(errorsOf(t, { LOG_LEVEL: 'loud' }), [
    'LOG_LEVEL must be one of fatal, error, warn, info, debug, silent',
  ])
})

t.test('limits: the lowest and the highest value are valid, and no other', async (t) => {
  const limits: Record<string, [number, number]> = {
    PORT: [0, 65_535],
    MAX_LIMIT: [1_000, 100_000],
    SHUTDOWN_DELAY_MS: [0, 600_000],
    DATABASE_POOL_SIZE: [1, 1_000],
    STATEMENT_TIMEOUT_MS: [100, 600_000],
    ANSWER_MEMORY_MB: [16, 65_536],
    MAX_REQUESTS: [1, 1_000_000],
    RATE_LIMIT_PER_MINUTE: [0, 10_000_000],
    METRICS_PORT: [0, 65_535],
    INSTANCES: [1, 1_000],
  }
  const numbers = Object.entries(settings).filter(([, setting]) => 'minimum' in setting)
  t.same(numbers.map(([name]) => name).sort(), Object.keys(limits).sort())
  for (const [name, [lowest, highest]] of Object.entries(limits)) {
    for (const value of [lowest, highest]) t.same(errorsOf(t, { [name]: String(value) }), [], name)
    for (const value of [lowest - 1, highest + 1, lowest + 0.5, 'x']) {
      t.match(
        errorsOf(t, { [name]: String(value) }),
        withLengths([new RegExp(`^${name} must be `)]),
      )
    }
  }
})

t.test('sslmode: the modes of pg, or one sentence', async (t) => {
  const url = (mode: string) => `postgres://u:${PASSWORD}@db.example/db?sslmode=${mode}`
  const warnings: unknown[] = []
  const listen = (warning: Error) => warnings.push(warning)
  process.on('warning', listen)
  for (const mode of ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'])
    t.same(errorsOf(t, { DATABASE_URL: url(mode) }), [], mode)
  for (const mode of ['bogus', 'allow', '']) {
    t.match(
      errorsOf(t, { DATABASE_URL: url(mode) }),
      withLengths([/^DATABASE_URL has an unknown sslmode: use/]),
    )
  }
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', listen)
  t.same(warnings, [], 'no line that is not JSON')
})

t.test('variables without an effect: a warning for a removed or misspelt setting', async (t) => {
  t.same(settingWarnings({ MAX_REQEUSTS: '1', WORKERS: '4', PATH: '/', HOSTNAME: 'a' }), [
    'MAX_REQEUSTS is no setting: did you mean MAX_REQUESTS?',
    'WORKERS has no effect any more: see CHANGELOG.md',
  ])
  t.same(settingWarnings({ OTEL_TRACES_EXPORTER: 'console', OTEL_EXPORTER_OTLP_ENDPONT: 'x' }), [
    'OTEL_TRACES_EXPORTER has no effect without OTEL_EXPORTER_OTLP_ENDPOINT',
    'OTEL_EXPORTER_OTLP_ENDPONT is no setting: did you mean OTEL_EXPORTER_OTLP_ENDPOINT?',
  ])
  t.same(settingWarnings({ AUTH_CLIENT_ID_CLAIM: 'azp', REDIS_URL_FILE: '/run/redis' }), [
    'AUTH_CLIENT_ID_CLAIM has no effect without AUTH_ISSUER',
    'REDIS_URL_FILE has no effect without RATE_LIMIT_PER_MINUTE',
  ])
  t.same(settingWarnings({ METRICS_HOST: '', INSTANCES: '2', METRICS_PORT: '9464' }), [])
  const known = Object.keys(settings).map((name) => [name, 'x'])
  const others = ['DATABASE_URL_FILE', 'OTEL_EXPORTER_OTLP_HEADERS', 'SERVICE_MEMORY']
  const all = [...known, ...others.map((name) => [name, 'x'])]
  t.same(settingWarnings(Object.fromEntries(all)), [])
})

t.test('empty variable: counts as not set', async (t) => {
  const empty = Object.fromEntries(Object.keys(settings).map((name) => [name, '']))
  t.same(readConfig(empty), readConfig({}))
})

t.test('.env and files of secrets', async (t) => {
  const { url } = await createDatabase(t)
  const login = await loginOfService(t, openAsOwner(t, url), url)
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env

  /** Creates a folder with this file .env. */
  async function folderWith(t: Test, envFile: string | Buffer): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'env-file-'))
    t.teardown(() => rm(folder, { recursive: true }))
    if (envFile === 'a folder') await mkdir(join(folder, '.env'))
    else if (envFile === 'a link to itself') await symlink('.env', join(folder, '.env'))
    else if (envFile !== '') await writeFile(join(folder, '.env'), envFile)
    return folder
  }

  /** Starts a program of src with only these settings, in a new folder with this file .env. */
  async function start(
    t: Test,
    program: string[],
    envFile: string | Buffer,
    env: Record<string, string> = {},
  ) {
    const [command = '', ...args] = program
    const options = {
      cwd: await folderWith(t, envFile),
      env: { PATH, HOME, NODE_COMPILE_CACHE, TERM: 'xterm', ...env },
      timeout: 30_000,
    }
    const child = spawn(command, args, options)
    t.teardown(() => child.kill())
    const closed = once(child, 'close')
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk
    })
    const stderr = text(child.stderr)
    const end = async () => {
      await closed
      return { code: child.exitCode, stdout, stderr: await stderr }
    }
    return { child, output: () => stdout, end }
  }

  const src = resolve(import.meta.dirname, '../../src')
  const service = [process.execPath, join(src, 'server.ts')]
  const appList = [process.execPath, join(src, 'operator/main.ts'), 'app', 'list']

  t.test('.env: its settings apply, and those of the environment win', async (t) => {
    const lines = `# comment\nDATABASE_URL="${login}"\nPORT=1\n\nHOST=none.invalid\nLOG_LEVEL='info'\n`
    const { output, child } = await start(t, service, lines, { PORT: '0', HOST: '127.0.0.1' })
    await until('it listens', () => /listening at http:\/\/127\.0\.0\.1:\d+/.test(output()))
    t.notMatch(output(), /127\.0\.0\.1:1"/)
    t.ok(
      output()
        .split('\n')
        .filter(Boolean)
        .every((line) => JSON.parse(line)),
      'JSON in a pipe',
    )
    child.kill()
  })

  t.test(
    '.env with a byte order mark and stray lines: settings apply, with warnings',
    async (t) => {
      const lines = [
        `\ufeffDATABASE_URL=${login}`,
        'export PORT=1',
        'MAX_LIMIT 5000',
        'OTHER="of two',
        'lines"',
        'S3cret',
        'PORT=0',
      ].join('\r\n')
      const warnings = [
        'Line 3 of .env has no effect: it is not NAME=value.',
        'Line 6 of .env has no effect: it is not NAME=value.',
        '.env sets PORT twice: the last value is used.',
      ]
      const { output, child } = await start(t, service, lines)
      await until('it listens', () => /listening at/.test(output()))
      t.same(output().match(/[^"]*of \.env has[^"]*|\.env sets[^"]*/g), warnings)
      t.notMatch(output(), /S3cret/)
      child.kill()
      const operator = await start(t, appList, lines.replace(login, url))
      t.match(await operator.end(), { code: 0, stderr: `${warnings.join('\n')}\n` })
    },
  )

  t.test('.env in UTF-16: one sentence, and exit code 1', async (t) => {
    for (const mark of ['\ufeff', '']) {
      const text = Buffer.from(`${mark}DATABASE_URL=${url}\n`, 'utf16le')
      const { end } = await start(t, appList, text)
      t.match(await end(), { code: 1, stdout: '', stderr: '.env is not UTF-8.\n' })
    }
  })

  t.test('.env that cannot be read: one sentence, and exit code 1', async (t) => {
    for (const file of ['a folder', 'a link to itself']) {
      const { end } = await start(t, appList, file, { DATABASE_URL: url })
      const stderr = /^\.env cannot be read \(\w+\)\.\n$/
      t.match(await end(), { code: 1, stdout: '', stderr }, file)
    }
  })

  t.test('secrets in files: the operator uses them, also from .env', async (t) => {
    const ownerFile = join(await folderWith(t, ''), 'owner')
    await writeFile(ownerFile, url)
    const operator = await start(t, appList, `DATABASE_URL_FILE=${ownerFile}\n`)
    t.match(await operator.end(), { code: 0, stderr: '' })
  })

  t.test('secrets in files that cannot be used: one sentence, and exit code 1', async (t) => {
    const folder = await folderWith(t, '')
    const [empty, invalid] = [join(folder, 'empty'), join(folder, 'invalid')]
    await writeFile(empty, ' \n')
    await writeFile(invalid, 'mysql://S3cret@db.example/db\n')
    const cases: [Record<string, string>, string | RegExp][] = [
      [{ DATABASE_URL_FILE: empty }, 'The file of DATABASE_URL_FILE is empty.'],
      [{ DATABASE_URL_FILE: folder }, 'The file of DATABASE_URL_FILE cannot be read (EISDIR).'],
      [{ DATABASE_URL_FILE: url }, 'The file of DATABASE_URL_FILE cannot be read (ENOENT).'],
      [{ DATABASE_URL_FILE: invalid }, /^DATABASE_URL must be a URL like .*$/],
    ]
    for (const [env, message] of cases) {
      let error: unknown
      try {
        const environment: NodeJS.ProcessEnv = { ...env }
        readSecretFiles(environment)
        readConfig(environment)
      } catch (thrown) {
        error = thrown
      }
      t.ok(error instanceof OperatorError)
      t.match((error as Error).message, message)
      t.notOk(String(error).includes(url) || String(error).includes('S3cret'))
    }
    const { end } = await start(t, service, '', { DATABASE_URL_FILE: empty })
    const stderr = 'The file of DATABASE_URL_FILE is empty.\n'
    t.match(await end(), { code: 1, stdout: '', stderr })
    const names = ['DATABASE_REPLICA_URL', 'REDIS_URL', 'OTEL_EXPORTER_OTLP_HEADERS']
    for (const name of [...names, 'SERVICE_DATABASE_PASSWORD']) {
      const environment: NodeJS.ProcessEnv = { [`${name}_FILE`]: invalid }
      readSecretFiles(environment)
      t.equal(environment[name], 'mysql://S3cret@db.example/db')
      await writeFile(empty, 'renewed\n')
      environment[`${name}_FILE`] = empty
      readSecretFiles(environment)
      t.equal(environment[name], 'renewed')
    }
  })

  t.test('terminal: readable log; a secret in a file', async (t) => {
    const loginFile = join(await folderWith(t, ''), 'login')
    await writeFile(loginFile, `${login}\n`)
    // A path may have spaces.
    const command = service.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
    const onTerminal =
      process.platform === 'darwin'
        ? ['script', '-q', '/dev/null', ...service]
        : ['script', '-qec', command, '/dev/null']
    const settings = {
      ...{ DATABASE_URL_FILE: loginFile, DATABASE_URL: '' },
      ...{ PORT: '0', SHUTDOWN_DELAY_MS: '0' },
    }
    const { output, child, end } = await start(t, onTerminal, '', settings)
    const address = () => /listening at (http:\/\/127\.0\.0\.1:\d+)/.exec(output())?.[1]
    await until('it listens', () => address() !== undefined)
    t.equal((await fetch(`${address()}/api/v1/none`)).status, 404)
    await until('the request is in the log', () => output().includes('request'))
    child.stdin.write('\x03')
    await end()
    t.notMatch(output(), '{"level":30')
    t.match(output(), /INFO\S*: \S*request/)
    t.match(output(), /^\[\d\d:\d\d:\d\d\.\d{3}\]/m, 'time of day')
    t.match(output(), '\x1b[', 'colors')
  })
})
