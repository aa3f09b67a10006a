import t from 'tap'
import { openClient } from '../support/database.ts'
import { operatorHere } from '../support/operator-process.ts'
import { startEmbeddedPostgres, startEmbeddedServer } from '../support/servers/embedded-postgres.ts'
import { onServer } from '../support/template.ts'

t.test(
  'Owner without CREATEROLE: an instruction that works, before anything is applied',
  async (t) => {
    const { server } = await startEmbeddedServer(t)
    await onServer(server, `create role owner login password 'secret'`)
    await onServer(server, 'create database investments owner owner')
    const own = Object.assign(new URL(server), {
      username: 'owner',
      password: 'secret',
      pathname: '/investments',
    }).href
    const migrate = () => operatorHere(['migrate', '--json'], { DATABASE_URL: own })
    const none = await migrate()
    t.match(none, {
      code: 1,
      stderr: /Nothing was changed\. .*:\ncreate role investment_service;\n/,
    })
    await onServer(server, 'create role investment_service')
    const { code, stderr } = await migrate()
    t.equal(code, 1)
    t.match(stderr, /Nothing was changed\. .*:\ncreate role investment_writer;\nalter role /)
    t.notMatch(stderr, 'create role investment_service', 'not the role that exists')
    await onServer(server, stderr.slice(stderr.indexOf('\n') + 1))
    t.match(await migrate(), { code: 0 })
  },
)

// Roles belong to all databases of a server, so the tests of other files would see this login, too.
t.test('another owner of a table, and a login without row-level security: found', async (t) => {
  const { url } = await startEmbeddedPostgres(t)
  const client = await openClient(t, url)
  await client.query('create role other')
  await client.query('create role login bypassrls in role investment_service')
  await client.query('alter table account_transaction_removal owner to other')
  const { code, json } = await operatorHere(['verify', '--json'], { DATABASE_URL: url })
  t.equal(code, 1)
  t.same(
    json().schema.missing.filter((text: string) => text.startsWith('alter ')),
    ['alter table account_transaction_removal owner to postgres', 'alter role login nobypassrls'],
  )
})
