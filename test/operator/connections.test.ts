import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RawBuilder, sql } from 'kysely'
import t from 'tap'
import { describeRows } from '../../src/operator/deletion.ts'
import { orderLine, portfolioLine } from '../support/importing.ts'
import { noRows } from '../support/no-rows.ts'
import { operator, operatorHere, startOperator } from '../support/operator-process.ts'
import { addApp, addConnection, addTransferOrders } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const { db, databaseUrl: DATABASE_URL, get } = await startService(t)
const folder = t.testdir()
let files = 0
const fileOf = (content: string | Buffer) => {
  files += 1
  const path = join(folder, String(files))
  writeFileSync(path, content)
  return path
}
const call = (...args: string[]) => operatorHere(args, { DATABASE_URL })

type Result = { line: number; id: string; token: string; errors?: { detail: string }[] }
const resultsOf = (text: string): Result[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

t.test('connection create --stream: a result for each line, in order', async (t) => {
  const appId = await addApp(db, { name: 'streaming' })
  const other = await addApp(db, { name: 'other' })
  await sql`update connection set external_id = 'customer 1' where id = ${(await addConnection(db, other)).id}`.execute(
    db,
  )
  const lines = [
    '{"externalId":"customer 1","label":"Savings"}',
    '{}',
    '',
    '{"externalId":"customer 1"}',
    '{"label":5}',
    '{"externalId":""}',
    '{"id":"5"}',
    'null',
    '{"externalId":',
    '{"externalId":"customer 2","label":null}',
    Buffer.from('{"label":"caf\xe9"}', 'latin1'),
  ]
  const create = ['connection', 'create', '--app', 'streaming', '--stream']
  const { code, stdout, stderr } = await call(
    ...create,
    fileOf(Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]))),
  )
  t.equal(code, 1)
  t.equal(stderr, '3 connections created, 7 lines failed.\n')
  const results = resultsOf(stdout)
  t.match(
    results,
    withLengths([
      { line: 1, externalId: 'customer 1', id: /^-?\d+$/, token: /^\w{22}$/ },
      { line: 2, externalId: null, id: /^-?\d+$/ },
      { line: 4, errors: [{ field: 'externalId', detail: /has this external id already/ }] },
      { line: 5, errors: [{ detail: 'label and externalId are texts' }] },
      { line: 6, errors: [{ detail: 'It must not be empty.' }] },
      { line: 7, errors: [{ detail: 'there is no such field: id' }] },
      { line: 8, errors: [{ detail: 'a JSON object is expected' }] },
      { line: 9, errors: [{ detail: /^not valid JSON/ }] },
      { line: 10, externalId: 'customer 2' },
      { line: 11, errors: [{ detail: /^the line is not UTF-8/ }] },
    ]),
  )
  const rows = await db
    .selectFrom('connection')
    .select(['id', 'label', 'external_id'])
    .where('app_id', '=', appId)
    .orderBy('external_id')
    .execute()
  t.same(
    rows.map(({ label, external_id }) => [label, external_id]),
    [
      ['Savings', 'customer 1'],
      [null, 'customer 2'],
      [null, null],
    ],
  )
  const again = await call(...create, fileOf('{"externalId":"customer 2"}'))
  t.match(again, { code: 1, stdout: new RegExp(`connection ${results[8]?.id} of this app`) })
  const single = ['connection', 'create', '--app', 'streaming', '--external-id', 'customer 2']
  t.match(await call(...single), { code: 1, stderr: /has this external id already\.\n$/ })
  t.match(await call(...create, '--label', 'x'), { code: 2, stderr: /^--stream reads each label/ })
})

t.test('external id: accepted where an id is, with its app', async (t) => {
  await addApp(db, { name: 'external' })
  const create = ['connection', 'create', '--app', 'external', '--external-id', 'mine', '--json']
  const { id, externalId } = (await call(...create)).json()
  t.equal(externalId, 'mine')
  const own = ['--app', 'external']
  const show = await call('connection', 'show', 'mine', ...own, '--json')
  t.match(show.json(), { id, externalId: 'mine', app: 'external', refreshedAt: null })
  const rows = fileOf(portfolioLine(1))
  const into = ['import', 'portfolio-transactions', '--connection', 'mine', rows]
  t.match(await call(...into, ...own), { code: 0 })
  t.match(await call(...into), { code: 2, stderr: /An external id needs --app/ })
  const line = `{"connection":"mine","transferOrders":[${orderLine(1)}]}`
  t.match(await call('refresh', fileOf(line), ...own), { code: 0 })
  t.match(await call('connection', 'show', id), { code: 0, stdout: /mine +- +1 +0/ })
  t.not((await call('connection', 'show', id, '--json')).json().refreshedAt, null)
  t.match(await call('connection', 'delete', 'theirs', ...own), {
    code: 1,
    stderr: /^The app external has no connection theirs: /,
  })
  t.match(await call('connection', 'delete', 'mine', ...own), { code: 0 })
})

t.test('connection list: by pages, external id, label and time of the refresh', async (t) => {
  const appId = await addApp(db, { name: 'many' })
  const lines = Array.from({ length: 1_100 }, (_, index) => `{"externalId":"e${index}"}`)
  const create = ['connection', 'create', '--app', 'many', '--stream']
  t.match(await call(...create, fileOf(lines.join('\n'))), { code: 0 })
  const list = async (...flags: string[]) => {
    const { items } = (await call('connection', 'list', '--app', 'many', '--json', ...flags)).json()
    return items as { id: string; externalId: string }[]
  }
  const all = await list()
  t.equal(all.length, 1_100)
  t.equal(new Set(all.map(({ externalId }) => externalId)).size, 1_100)
  const ids = all.map(({ id }) => BigInt(id))
  t.ok(ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? id)))
  const [first, second] = [
    await list('--limit', '1050'),
    await list('--after', all[1_049]?.id ?? ''),
  ]
  t.same([...first, ...second], all)
  t.equal((await list('--external-id', 'e7'))[0]?.externalId, 'e7')
  t.same(await list('--external-id', 'none'), [])
  await sql`update connection set label = 'L', refreshed_at = now() - interval '3 days'
    where external_id in ('e1', 'e2') and app_id = ${appId}`.execute(db)
  await sql`update connection set refreshed_at = now()
    where external_id <> 'e1' and app_id = ${appId}`.execute(db)
  t.equal((await list('--label', 'L')).length, 2)
  t.same(
    (await list('--refreshed-before', '2d')).map(({ externalId }) => externalId),
    ['e1'],
  )
  t.same(await list('--refreshed-before', '2020-01-01'), [])
  const text = await call('connection', 'list', '--app', 'many')
  t.equal(text.stdout.split('\n').length, 1_102)
  t.match(text.stdout, /^id +external id +label +portfolio/)
  t.match(await call('connection', 'list', '--app', 'many', '--refreshed-before', 'x'), { code: 2 })
  t.match(await call('connection', 'list', '--app', 'many', '--after', 'e7'), {
    code: 2,
    stderr: /It must be the id of a connection/,
  })
  t.match(await call('connection', 'list', '--app', 'many', '--label', 'no'), {
    stdout: 'The app many has no such connections.\n',
  })
})

t.test('connection delete --file: those that exist, with their rows', async (t) => {
  const appId = await addApp(db, { name: 'leaving' })
  const [gone, stays] = [await addConnection(db, appId), await addConnection(db, appId)]
  await sql`update connection set external_id = 'leaver' where id = ${gone.id}`.execute(db)
  await addTransferOrders(db, gone, {})
  const path = fileOf('un,kno;wn\r\nleaver\n5\n')
  const args = ['connection', 'delete', '--app', 'leaving', '--file', path]
  t.match(await call(...args), {
    code: 0,
    stdout:
      `1 connection deleted with ${describeRows({ ...noRows, transferOrders: 1 })}; ` +
      '2 of the ids had none.\n',
  })
  t.match(await call(...args), {
    code: 1,
    stdout: '',
    stderr:
      /^None of the 3 ids in \S+ is that of a connection of leaving\. Nothing was deleted\.\n/,
  })
  t.match(await call('connection', 'delete', '--file', fileOf('5\n')), {
    code: 1,
    stderr: /^None of the 1 id in \S+ is that of a connection, for example 5\. Nothing was deleted/,
  })
  t.match(await call('connection', 'delete', '--file', fileOf('\n')), { code: 0 })
  t.match(
    (
      await operator(['connection', 'delete', '--file', '-', '--json'], {
        env: { DATABASE_URL },
        input: `${stays.id}\n`,
      })
    ).json(),
    { connections: 1, missing: 0 },
  )
  t.match(await call('connection', 'delete', '5', '--file', path), { code: 2 })
})

t.test('standard output is full after the work: an error, and the work stays', async (t) => {
  const command = './operator app create full-output > /dev/full'
  const { status, stderr } = spawnSync('sh', ['-c', command], {
    env: { ...process.env, DATABASE_URL },
    encoding: 'utf8',
  })
  t.equal(status, 1)
  t.equal(
    stderr,
    'Standard output cannot be written: its disk is full. What the command changed is stored.\n',
  )
  const { items } = (await call('app', 'list', '--json')).json() as { items: { name: string }[] }
  t.ok(items.some(({ name }) => name === 'full-output'))
})

t.test('nobody can read the results: no connection without its token', async (t) => {
  await addApp(db, { name: 'unread' })
  const create = ['connection', 'create', '--app', 'unread', '--stream']
  const path = fileOf('{}\n'.repeat(1_050))
  t.match(await operatorHere([...create, path], { DATABASE_URL }, { isRead: () => false }), {
    code: 1,
    stderr: 'The reader of the results has ended.\n',
  })
  const one = await operatorHere(create.slice(0, -1), { DATABASE_URL }, { isRead: () => false })
  t.match(one, { code: 1, stderr: 'The reader of the results has ended.\n' })
  const isRead = () => {
    throw Object.assign(new Error('no space left'), { code: 'ENOSPC', syscall: 'write' })
  }
  const full = await operatorHere([...create.slice(0, -1), '--json'], { DATABASE_URL }, { isRead })
  t.match(full, { code: 1, stderr: 'Standard output cannot be written: its disk is full.\n' })
  const issue = ['token', 'issue', '--app', 'unread']
  t.match(await operatorHere(issue, { DATABASE_URL }, { isRead: () => false }), { code: 1 })
  t.match(await operatorHere(issue, { DATABASE_URL }, { isRead }), { code: 1 })
  for (const list of ['connection', 'token'])
    t.same((await call(list, 'list', '--app', 'unread', '--json')).json(), { items: [] })
  t.match(await call(...create, path), { code: 0 })
  let written = 0
  const isFirst = () => {
    written += 1
    return false
  }
  const list = ['connection', 'list', '--app', 'unread']
  t.match(await operatorHere(list, { DATABASE_URL }, { isRead: isFirst }), { code: 0, stderr: '' })
  t.equal(written, 1, 'the second page is not read')
})

t.test('app delete --with-connections: a repetition continues', async (t) => {
  const appId = await addApp(db, { name: 'huge' })
  const lines = Array.from({ length: 1_100 }, () => '{}')
  const create = ['connection', 'create', '--app', 'huge', '--stream']
  t.match(await call(...create, fileOf(lines.join('\n'))), { code: 0 })
  const count = async () => {
    const { rows } = await sql<{ n: number }>`
      select count(*)::integer as n from connection where app_id = ${appId}`.execute(db)
    return rows[0]?.n
  }
  await sql`
    create function stop() returns trigger language plpgsql as $$ begin
      if old.label = 'last' then raise exception 'interrupted'; end if; return null; end $$`.execute(
    db,
  )
  const change = async (trigger: RawBuilder<unknown>) =>
    await db.transaction().execute(async (transaction) => {
      // Citus otherwise rejects the trigger. PostgreSQL ignores the setting.
      await sql`set local citus.enable_unsafe_triggers = on`.execute(transaction)
      await trigger.execute(transaction)
    })
  await change(
    sql`create trigger stop after delete on connection for each row execute function stop()`,
  )
  await sql`update connection set label = 'last' where id = (
    select id from connection where app_id = ${appId} order by id offset 700 limit 1)`.execute(db)
  const remove = ['app', 'delete', 'huge', '--with-connections', '--json']
  t.match(await call(...remove), { code: 1 })
  t.equal(await count(), 600)
  await change(sql`drop trigger stop on connection`)
  t.match((await call(...remove)).json(), { connections: 600 })
  t.equal(await count(), 0)
})

t.test('SIGTERM while connections are created: each result is true', async (t) => {
  const appId = await addApp(db, { name: 'stopped' })
  const args = ['connection', 'create', '--app', 'stopped', '--stream']
  const { child, stdout, closed } = startOperator(args, { env: { DATABASE_URL } })
  child.stdin.write('{}\n{}\n')
  await until('both connections exist', () => stdout().split('\n').length >= 3)
  child.kill('SIGTERM')
  t.same(await closed, { code: null, signal: 'SIGTERM' })
  const rows = await db.selectFrom('connection').select('id').where('app_id', '=', appId).execute()
  t.same(
    rows.map(({ id }) => id).sort(),
    resultsOf(stdout())
      .map(({ id }) => id)
      .sort(),
  )
  t.equal((await get('/health/live')).status, 200)
})
