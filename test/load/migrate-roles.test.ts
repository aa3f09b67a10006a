import t from 'tap'
import { operatorHere } from '../support/operator-process.ts'
import { startEmbeddedServer } from '../support/servers/embedded-postgres.ts'
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
