import { createHash } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { table } from '../../src/operator/table.ts'
import { databaseName } from '../../src/postgres/server-urls.ts'
import { connectionKey, tokenHash } from '../../src/postgres/tokens.ts'
import { AccountTransactions } from '../../src/schemas/account-transaction.ts'
import type { List } from '../../src/schemas/list.ts'
import { TransferOrders } from '../../src/schemas/transfer-order.ts'
import { createDatabase } from '../support/database.ts'
import { accountLine, orderLine, portfolioLine } from '../support/importing.ts'
import { openAsOwner } from '../support/logins.ts'
import { operator, operatorHere } from '../support/operator-process.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { withLengths } from '../support/with-lengths.ts'

const { url: DATABASE_URL } = await createDatabase(t)
const db = openAsOwner(t, DATABASE_URL)
const call = (...args: string[]) => operatorHere(args, { DATABASE_URL })
const folder = t.testdir()
/** Path of a new file with this token. */
const tokenFile = (token: string) => {
  const path = join(folder, encodeURIComponent(token))
  writeFileSync(path, `${token}\n`)
  return path
}
/** Id of the connection with this token. */
const idOf = (token: string) => connectionKey(tokenHash(token))
let files = 0
/** Path of a new file with these rows. */
const rowsFile = (rows: string) => {
  files += 1
  const path = join(folder, `${files}.ndjson`)
  writeFileSync(path, rows)
  return path
}
/** Calls the admin CLI in a new process, because it reads standard input. */
const callWith = (input: string, ...args: string[]) =>
  operator(args, { env: { DATABASE_URL }, input })

const time = /^20\d\d-\d\d-\d\dT[\d:.]+Z$/

t.test('--json: creates an app, a token, a connection and rows', async (t) => {
  const app = (await call('app', 'create', 'wealth', '--client-id', 'c-1', '--json')).json()
  t.matchOnly(app, { id: /^[0-9a-f-]{36}$/, name: 'wealth' })
  const token = (await call('token', 'issue', '--app', 'wealth', '--ttl', '90d', '--json')).json()
  t.matchOnly(token, {
    id: /^[0-9a-f-]{36}$/,
    token: /^idq_[A-Za-z0-9_-]{43}$/,
    expiresAt: time,
  })
  const days = (Date.parse(token.expiresAt) - Date.now()) / 86_400_000
  t.ok(days > 89.9 && days <= 90)
  const connection = (await call('connection', 'create', '--app', 'wealth', '--json')).json()
  t.matchOnly(connection, { id: /^-?\d+$/, token: /^[A-Za-z0-9]{22}$/ })
  const rows = `${portfolioLine(1)}\n${portfolioLine(2)}\n`
  const into = ['import', 'portfolio-transactions', '--connection', connection.id, '--json']
  const { leftOut, ...counts } = (await callWith(rows, ...into, '-')).json()
  t.same(counts, { read: 2, inserted: 2, updated: 0, unchanged: 0, removed: 0 })
  t.ok(leftOut.includes('amount'))
  const [apps, tokens, connections] = await Promise.all([
    call('app', 'list', '--json'),
    call('token', 'list', '--app', 'wealth', '--json'),
    call('connection', 'list', '--app', 'wealth', '--json'),
  ])
  t.matchOnly(
    apps.json().items.find(({ id }: { id: string }) => id === app.id),
    { ...app, clientId: 'c-1', createdAt: time, connections: 1 },
  )
  const { id: tokenId, expiresAt } = token
  t.matchOnly(tokens.json(), {
    items: [{ id: tokenId, status: 'valid', createdAt: time, expiresAt, revokedAt: null }],
  })
  t.matchOnly(connections.json(), {
    items: [
      {
        id: connection.id,
        externalId: null,
        label: null,
        createdAt: time,
        changedAt: time,
        refreshedAt: time,
        portfolioTransactions: 2,
        accountTransactions: 0,
      },
    ],
  })
  const renamed = await call('app', 'set-client-id', 'wealth', 'c-2', '--json')
  t.same(renamed.json(), { id: app.id, name: 'wealth', clientId: 'c-2' })
  const lists = [apps, tokens, connections].map(({ stdout }) => stdout).join()
  t.notMatch(lists, token.token, 'a token is shown only when it is made')
  t.notMatch(lists, connection.token)
})

t.test('Tokens: only the SHA-256 is stored', async (t) => {
  await call('app', 'create', 'hashes')
  const issued = (await call('token', 'issue', '--app', 'hashes', '--json')).json()
  t.equal(issued.expiresAt, null)
  const given = [
    'connection',
    'create',
    '--app',
    'hashes',
    '--token-file',
    tokenFile('größe 1/2'),
    '--json',
  ]
  const created = (await call(...given)).json()
  t.equal(created.token, 'größe 1/2')
  const hash = (token: string) => createHash('sha256').update(token, 'utf8').digest()
  const token = await db.selectFrom('app_token').selectAll().where('id', '=', issued.id).execute()
  t.same(
    token.map((row) => row.token_hash),
    [hash(issued.token)],
  )
  const connection = await db
    .selectFrom('connection')
    .selectAll()
    .where('id', '=', created.id)
    .execute()
  t.same(
    connection.map((row) => row.token_hash),
    [hash('größe 1/2')],
  )
})

t.test('connection create: a token from a file or standard input', async (t) => {
  await call('app', 'create', 'naming')
  const create = ['connection', 'create', '--app', 'naming', '--json', '--token-file']
  const { id } = (await callWith('naming-token\r\n', ...create, '-')).json()
  t.equal(id, idOf('naming-token'), 'the line break is no part of the token')
  const empty = { code: 1, stderr: 'There is no token in /dev/null.\n' }
  t.match(await call(...create.slice(0, 4), '--token-file', '/dev/null'), empty)
})

t.test(
  'token issue: --ttl in each unit; without it, says that the token never expires',
  async (t) => {
    await call('app', 'create', 'lifetimes')
    const issue = ['token', 'issue', '--app', 'lifetimes']
    const seconds = { '90s': 90, '30m': 1_800, '1h': 3_600, '2d': 172_800, '1w': 604_800 }
    for (const [ttl, expected] of Object.entries(seconds)) {
      const before = Date.now()
      const { expiresAt } = (await call(...issue, '--ttl', ttl, '--json')).json()
      const actual = (Date.parse(expiresAt) - before) / 1_000
      // Less than the difference between units, more than the time of the command.
      t.ok(actual > expected - 5 && actual < expected + 30, `${ttl}: ${actual} s`)
    }
    t.match(await call(...issue), { stdout: / of lifetimes never expires \(see --ttl\)/ })
  },
)

t.test('token revoke: keeps the time of the first revocation', async (t) => {
  await call('app', 'create', 'revoking')
  const { id } = (await call('token', 'issue', '--app', 'revoking', '--json')).json()
  const first = (await call('token', 'revoke', id, '--json')).json()
  t.match(first, { id, revokedAt: String })
  t.same((await call('token', 'revoke', id, '--json')).json(), first)
  const list = await call('token', 'list', '--app', 'revoking')
  t.match(list.stdout, new RegExp(`${id} +revoked`))
})

t.test('token expiring: exit code 1 with the valid tokens that expire in this time', async (t) => {
  await call('app', 'create', 'expiring')
  const issue = async (...ttl: string[]) =>
    (await call('token', 'issue', '--app', 'expiring', '--json', ...ttl)).json().id as string
  const first = await issue('--ttl', '12d')
  const second = await issue('--ttl', '13d')
  await issue('--ttl', '15d')
  const revoked = await issue('--ttl', '1d')
  await call('token', 'revoke', revoked)
  const unlimited = await issue()
  const expiring = async (...within: string[]) => {
    const { code, json } = await call('token', 'expiring', '--json', ...within)
    const items = json().items.filter(({ app }: { app: string }) => app === 'expiring')
    return { code, items }
  }
  t.match(
    await expiring(),
    withLengths({
      code: 1,
      items: [
        { app: 'expiring', id: first, expiresAt: time, longerTokens: 3 },
        { id: second, longerTokens: 2 },
      ],
    }),
  )
  t.equal((await expiring()).items.length, 2)
  t.equal((await expiring('--within', '16d')).items.length, 3)
  t.same((await expiring('--within', '11d')).items, [])
  t.match(await call('token', 'expiring'), { code: 1, stdout: `${first}` })
  await call('token', 'revoke', unlimited)
  t.match((await expiring()).items, withLengths([{ longerTokens: 2 }, { longerTokens: 1 }]))
})

t.test('token expiring: exit code 0 if no token expires in this time', async (t) => {
  const { url } = await createDatabase(t)
  const { code, stdout } = await operatorHere(['token', 'expiring'], { DATABASE_URL: url })
  t.same([code, stdout], [0, 'No token expires in this time.\n'])
})

t.test('connection create: a token is unique in the whole database', async (t) => {
  await call('app', 'create', 'one')
  await call('app', 'create', 'two')
  const create = ['connection', 'create', '--token-file', tokenFile('shared'), '--app']
  t.match(await call(...create, 'one'), { code: 0 })
  for (const app of ['one', 'two']) {
    t.match(await call(...create, app), {
      code: 1,
      stdout: '',
      stderr:
        'A connection with this token exists already: a token is unique in the whole database.\n',
    })
  }
  const file = rowsFile(portfolioLine(1))
  const into = ['import', 'portfolio-transactions', '--connection', idOf('shared'), file]
  t.match(await call(...into, '--app', 'two'), {
    code: 1,
    stdout: '',
    stderr: /^The app two has no connection /,
  })
  t.match(await call(...into, '--app', 'one'), {
    code: 0,
    stdout: 'Read 1 row: 1 inserted, 0 updated, 0 unchanged.\n',
  })
})

t.test(
  'connection create: a new token has 22 letters and digits, and its id is its key',
  async (t) => {
    await call('app', 'create', 'keyed')
    const { id, token } = (await call('connection', 'create', '--app', 'keyed', '--json')).json()
    t.match(token, /^[A-Za-z0-9]{22}$/)
    t.equal(id, connectionKey(tokenHash(token)))
  },
)

t.test('Wrong arguments: the sentence names the help of the own command', async (t) => {
  const cases: [string[], string][] = [
    [['toke'], ''],
    [['--json', 'app', 'create'], 'app create '],
    [['token', 'isue'], 'token '],
    [['token', 'issue', '--ttl', 'app'], 'token issue '],
    [['connection', 'delete', 'AbCdEfGh12'], 'connection delete '],
    [['import', 'transfer-orders'], 'import transfer-orders '],
    [['app', 'create', 'list', 'delete'], 'app create '],
  ]
  for (const [args, own] of cases) {
    const { code, stderr } = await call(...args)
    t.equal(code, 2)
    t.ok(stderr.endsWith(` See operator ${own}--help.\n`), stderr)
  }
})

t.test('Wrong arguments: one sentence and exit code 2', async (t) => {
  const id = '00000000-0000-4000-8000-000000000001'
  const into = ['import', 'transfer-orders', '--connection', '5']
  const cases: [string[], RegExp][] = [
    [['ap'], /^Unknown command 'ap'\. Did you mean app\? See operator --help\.$/],
    [
      ['import', 'portfolio'],
      /^Unknown command 'portfolio'\. Did you mean portfolio-transactions\? See operator import --help\.$/,
    ],
    [['app', 'create'], /^Missing required argument 'name'\./],
    [['app', 'create', ''], /It must not be empty\./],
    [['app', 'create', 'x'.repeat(256)], /255 characters at most\./],
    [['app', 'create', 'a\nb'], /Control characters are not allowed/],
    [['app', 'create', 'a', 'b'], /^Too many arguments/],
    [['app', 'list', '--jso'], /^Unknown option '--jso'\. Did you mean --json\?/],
    [['app', 'set-client-id', 'a'], /^Give a client id, or --none\./],
    [['app', 'set-client-id', 'a', 'b', '--none'], /^Give a client id, or --none\./],
    [['app', 'set-client-id', 'a', ''], /It must not be empty/],
    [['app', 'delete'], /^Missing required argument 'name'\./],
    [['token', 'issue'], /^Required option '--app <name>' not specified\./],
    [
      ['token', 'issue', '--app', 'a', '--ttl', '90'],
      /^'90' is no valid value of --ttl\. Write a number and s, m, h, d or w/,
    ],
    [['token', 'issue', '--app', 'a', '--ttl', '0d'], /Write a number/],
    [['token', 'issue', '--app', 'a', '--ttl', '36501d'], /Write a number/],
    [['token', 'issue', '--app', 'a', '--ttl', '3153600001s'], /Write a number/],
    [['token', 'revoke', '1'], /^'1' is no valid <id>\. The id is a UUID: see `token list/],
    [['token', 'revoke', `${id}0`], /The id is a UUID/],
    [['connection', 'create', '--app', 'a', '--token-file', ''], /It must not be empty/],
    [['connection', 'create', '--app', 'a', '--token', 'x'], /^Unknown option '--token'/],
    [['connection', 'delete'], /^Give the id of the connection, or a file with ids/],
    [['connection', 'delete', '5', '--file', 'x'], /^Give the id of the connection, or a/],
    [['connection', 'show'], /^Missing required argument 'id'\./],
    [
      ['connection', 'delete', 'AbCdEfGh12'],
      /^(?!.*AbCd)The id of a connection is a number: `connection list/,
    ],
    [['connection', 'delete', '9223372036854775808'], /^The id of a connection is a number/],
    [
      ['import', 'transfer-orders', '--connection', 'AbCdEfGh12', '-'],
      /^(?!.*AbCd)The id of a connection is a number: .* An external id needs --app\./,
    ],
    [into, /^Missing required argument 'file'\./],
    [[...into, '-', '-'], /^Standard input \(-\) can be read only once\./],
    [['import', 'transfer-orders', '-'], /^Required option '--connection <id>' not specified\./],
  ]
  await Promise.all(
    cases.map(async ([args, sentence]) => {
      const { code, stdout, stderr } = await call(...args)
      t.equal(code, 2, args.join(' '))
      t.equal(stdout, '')
      t.match(stderr.trimEnd(), sentence)
      t.equal(stderr.trimEnd().split('\n').length, 1)
    }),
  )
})

t.test('on a terminal: names the database', async (t) => {
  const { stderr } = await operatorHere(['app', 'list'], { DATABASE_URL }, { isTerminal: true })
  t.equal(stderr, `The database is ${databaseName(DATABASE_URL)}.\n`)
})

t.test('--verbose: names the database, without its password', async (t) => {
  const name = databaseName(DATABASE_URL)
  t.match(await call('--verbose', 'app', 'list'), { code: 0, stderr: `The database is ${name}.\n` })
  t.equal(databaseName('postgres://u:S3cret@one,[::1]:5433/db'), 'db on one:5432, [::1]:5433')
})

t.test('NODE_ENV=production without DATABASE_URL: no embedded database starts', async (t) => {
  t.match(await operatorHere(['app', 'list'], { NODE_ENV: 'production' }), {
    code: 1,
    stdout: '',
    stderr: 'DATABASE_URL must be set, because NODE_ENV is production.\n',
  })
})

t.test('Failure: one sentence and exit code 1, and JSON for scripts', async (t) => {
  await call('app', 'create', 'taken', '--client-id', 'taken-id')
  await call('connection', 'create', '--app', 'taken', '--token-file', tokenFile('taken-token'))
  const into = ['import', 'account-transactions', '--connection', idOf('taken-token')]
  const cases: [string[], string][] = [
    [['app', 'create', 'taken'], 'The app taken already exists: `app list` shows all apps.'],
    [
      ['app', 'create', 'other', '--client-id', 'taken-id'],
      'Another app already has the client id taken-id.',
    ],
    [['app', 'set-client-id', 'no', 'free-id'], 'There is no app no: `app list` shows all apps.'],
    [['token', 'list', '--app', 'no'], 'There is no app no: `app list` shows all apps.'],
    [
      ['token', 'revoke', '00000000-0000-4000-8000-000000000001'],
      'There is no token 00000000-0000-4000-8000-000000000001: ' +
        '`token list --app NAME` shows those of an app.',
    ],
    [
      ['connection', 'create', '--app', 'taken', '--token-file', tokenFile('taken-token')],
      'A connection with this token exists already: a token is unique in the whole database.',
    ],
    [[...into, 'no-such-file'], 'no-such-file: no such file or directory.'],
    [[...into, tmpdir()], `${tmpdir()} is a folder: name the files in it.`],
    // Linux refuses to read the first page of a process: EIO, as a disk that fails.
    ...(existsSync('/proc/self/mem')
      ? ([[[...into, '/proc/self/mem'], '/proc/self/mem: i/o error.']] as [string[], string][])
      : []),
    [
      ['import', 'transfer-orders', '--connection', '5', '-'],
      'There is no connection 5: `connection list --app NAME` shows those of an app.',
    ],
  ]
  await Promise.all(
    cases.map(async ([args, sentence]) => {
      const { code, stdout, stderr, json } = await call(...args, '--json')
      t.equal(code, 1, args.join(' '))
      const [first, second = ''] = stderr.trimEnd().split('\n')
      t.equal(first, sentence)
      // It helps if the database is another one than the operator means.
      if (second !== '') t.equal(second, `The database is ${databaseName(DATABASE_URL)}.`)
      t.equal(second === '', /folder|no such file|i\/o error/.test(sentence))
      t.same(json(), { error: sentence })
      t.equal(stdout.split('\n').length, 2, 'one line')
    }),
  )
})

t.test('Control and bidirectional characters: escaped in messages, text and JSON', async (t) => {
  const named = await call('token', 'list', '--app', 'a\u001b[2J\u202e\u009bb')
  t.match(named, { code: 1, stderr: 'There is no app a\\u001b[2J\\u202e\\u009bb: ' })
  const file = await call('import', 'transfer-orders', '--connection', '5', 'a\r\nb\u2066')
  t.match(file, { code: 1, stderr: 'a\\u000d\\u000ab\\u2066: no such file or directory.\n' })
  const name = 'right\u202eleft'
  t.match(await call('app', 'create', name), { code: 0, stdout: /^The app right\\u202eleft is/ })
  const { json } = await call('connection', 'create', '--app', name, '--json')
  const list = await call('app', 'list', '--json')
  t.notMatch(list.stdout, /[\u0080-\u009f\u202e]/)
  t.match(
    list.json().items.find((app: { name: string }) => app.name === name),
    { name },
    'the same name',
  )
  const path = join(folder, 'rows\u009b\n1.ndjson')
  writeFileSync(path, `${portfolioLine(1).replace('BUY', 'BUY\u009b\u202e')}\n`)
  const into = ['import', 'portfolio-transactions', '--connection', json().id, path]
  t.match(await call(...into), {
    stderr:
      /\n\/.*\/rows\\u009b\\u000a1\.ndjson:1: type: "BUY\\u009b\\u202e" is not a value of this field;/,
  })
  const rejected = await call(...into, '--json')
  t.notMatch(rejected.stdout, /[\u0080-\u009f\u202e]/)
  t.match(rejected.json(), withLengths({ faults: [{ file: path, line: 1 }] }))
})

/** Fields of a list that none of these rows has. */
function fieldsWithout({ item }: List, lines: string[]): string[] {
  const given = Object.assign({}, ...lines.map((line) => JSON.parse(line)))
  return Object.keys(item.properties).filter((name) => !Object.hasOwn(given, name))
}

t.test('import: names the fields that no row had', async (t) => {
  await call('app', 'create', 'sparse')
  await call('connection', 'create', '--app', 'sparse', '--token-file', tokenFile('sparse'))
  const importing = (type: string, rows: string, ...options: string[]) =>
    call('import', type, '--connection', idOf('sparse'), rowsFile(rows), ...options)
  // Some fields per row; a null counts as present, and so does a null object.
  const lines = [
    accountLine(1, '"exchangeRate":1,"commission":null,"taxes":0,"currency":"EUR"'),
    accountLine(2, '"description":"","localCurrency":null,"valueDateDay":null,"investment":null'),
    accountLine(3, '"originalOperationDateDay":null,"originalValueDateDay":null'),
    accountLine(4, '"originalOperationDateTz":null,"originalValueDateTz":null'),
  ]
  const rows = lines.join('\n\n')
  const leftOut = fieldsWithout(AccountTransactions, lines)
  // A later release may have more of them.
  t.match(
    leftOut,
    withLengths([
      'operationDateHour',
      'originalOperationDateHour',
      'valueDateHour',
      'originalValueDateHour',
    ]),
  )
  const sentence = `Missing in every row, and stored as null: ${leftOut.length} fields (names: --json).`
  const count = 'Read 4 rows: 4 would be inserted, 0 would be updated, 0 are unchanged.'
  t.equal(
    (await importing('account-transactions', rows, '--dry-run')).stdout,
    `${count}\n${sentence}\n`,
  )
  t.same((await importing('account-transactions', rows, '--json')).json(), {
    read: 4,
    inserted: 4,
    updated: 0,
    unchanged: 0,
    removed: 0,
    leftOut,
  })
  const order = orderLine(
    1,
    `"portfolio":"p","investment":null,"name":"n","isin":null,"currency":"EUR","assetType":null,
     "titles":1,"amount":1,"total":true,"marketer":{"name":"m","cif":"c"}`.replace('\n', ''),
  )
  const orders = 'transfer-orders'
  const [ofOrder, ...later] = fieldsWithout(TransferOrders, [order])
  t.equal(ofOrder, 'managementCompany')
  const fields = later.length === 0 ? '1 field' : `${1 + later.length} fields`
  t.equal(
    (await importing(orders, order)).stdout,
    'Read 1 row: 1 inserted, 0 updated, 0 unchanged.\n' +
      `Missing in every row, and stored as null: ${fields} (names: --json).\n`,
    'completedAt is not null where it is left out',
  )
  const nulls = [ofOrder, ...later].map((name) => `"${name}":null,`).join('')
  const whole = order.replace('{"id"', `{${nulls}"id"`)
  t.equal(
    (await importing(orders, `${order}\n${whole.replace('000001', '000002')}`)).stdout,
    'Read 2 rows: 1 inserted, 0 updated, 1 unchanged.\n',
  )
  t.same((await importing(orders, '', '--json')).json().leftOut, [], 'where there are no rows')
})

t.test('Rejected import: lists the problems as text and as JSON', async (t) => {
  await call('app', 'create', 'rejected')
  await call('connection', 'create', '--app', 'rejected', '--token-file', tokenFile('rejected'))
  const folder = await mkdtemp(join(tmpdir(), 'operator-test-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const [valid, invalid] = [join(folder, 'valid.ndjson'), join(folder, 'invalid.ndjson')]
  await writeFile(valid, portfolioLine(1))
  await writeFile(invalid, `${portfolioLine(2)}\n${portfolioLine(3, '"titel":1')}`)
  const into = ['import', 'portfolio-transactions', '--connection', idOf('rejected')]
  const reason = 'there is no such field; the closest is titles'
  t.match(await call(...into, valid, invalid), {
    code: 1,
    stdout: '',
    stderr: `1 problem in the input; nothing was imported:\n${invalid}:2: titel: ${reason}\n`,
  })
  t.same((await call(...into, valid, invalid, '--json')).json(), {
    error: 'rejected',
    faults: [{ file: invalid, line: 2, field: 'titel', reason }],
    total: 1,
  })
  t.match(await call(...into, valid, '--dry-run'), {
    code: 0,
    stdout: 'Read 1 row: 1 would be inserted, 0 would be updated, 0 are unchanged.\n',
  })
  t.match(await call(...into, valid), {
    stdout: 'Read 1 row: 1 inserted, 0 updated, 0 unchanged.\n',
  })
  t.match(await call(...into, '/dev/null'), {
    code: 0,
    stdout: 'Read 0 rows: the input has none.\n',
  })
})

t.test('Tables: columns align under wide characters and combining marks', async (t) => {
  const names = ['plain', '漢字', 'Überweisung', 'e\u0301e\u0301', '한국어 ｶﾞ', '💶']
  const items = names.map((name) => ({ name, rows: 1 }))
  const lines = table(items).split('\n')
  t.same(lines, [
    'name         rows',
    'plain        1',
    '漢字         1',
    'Überweisung  1',
    'e\u0301e\u0301           1',
    '한국어 ｶﾞ    1',
    '💶           1',
  ])
  t.equal(table([], 'There are none.'), 'There are none.')
})

t.test('seed: adds public tokens only to a database without other apps', async (t) => {
  const { url } = await createDatabase(t)
  const run = (...args: string[]) => operatorHere(args, { DATABASE_URL: url })
  await run('app', 'create', 'first')
  t.match(await run('seed'), { code: 1, stderr: /^The database has the app first\. / })
  t.equal((await run('app', 'list', '--json')).json().items.length, 1)
  const { databaseUrl } = await startSeededService(t)
  const runSeeded = (...args: string[]) => operatorHere(args, { DATABASE_URL: databaseUrl })
  await runSeeded('app', 'create', 'second')
  t.equal((await runSeeded('seed')).code, 0, 'the database has the sample data already')
})

t.test('Tables: control and bidirectional characters are escaped', async (t) => {
  const names = ['\u001b[2J', 'a\u202eb', 'a\u2066b', 'a\u200bb', '\u009b1m', 'a\r\nb', '\ud83d']
  const items = names.map((name) => ({ name, at: new Date(0), noneAtAll: null }))
  const [headings, ...lines] = table(items).split('\n')
  t.match(headings, /^name +at +none at all$/)
  const shown = [
    '\\u001b[2J',
    'a\\u202eb',
    'a\\u2066b',
    'a\\u200bb',
    '\\u009b1m',
    'a\\u000d\\u000ab',
    '\\ud83d',
  ]
  t.same(
    lines,
    shown.map((name) => `${name.padEnd(14)}  1970-01-01T00:00:00.000Z  -`),
  )
})

t.test(
  '--help and --version: an example of every command, the version of package.json',
  async (t) => {
    const commands = [
      'migrate',
      'seed',
      'verify',
      'app create',
      'app list',
      'app set-client-id',
      'app delete',
      'token issue',
      'token list',
      'token expiring',
      'token revoke',
      'connection create',
      'connection list',
      'connection show',
      'connection delete',
      'refresh',
      'import portfolio-transactions',
      'import account-transactions',
      'import transfer-orders',
    ]
    await Promise.all(
      commands.map(async (command) => {
        const { code, stdout } = await operatorHere([...command.split(' '), '--help'], {})
        t.equal(code, 0)
        t.match(stdout, `For example:\n  operator ${command}`)
      }),
    )
    const orders = await operatorHere(['import', 'transfer-orders', '--help'], {})
    t.match(
      orders.stdout,
      /missing field becomes null.* completedAt .*the time of the import, .*; null means not completed/s,
    )
    const { version } = JSON.parse(await readFile('package.json', 'utf8'))
    for (const option of ['--version', '-V']) {
      const printed = { code: 0, stdout: `${version}\n`, stderr: '' }
      t.match(await operatorHere([option], {}), printed)
    }
    t.match(await operatorHere(['--help'], {}), {
      code: 0,
      stdout: /Commands:\n {2}migrate/,
      stderr: '',
    })
    t.match(await operator([]), { code: 2, stdout: '', stderr: /Commands:\n {2}migrate/ })
  },
)
