import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import { addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { openAsOwner } from '../support/logins.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { libpqVariables, runShell } from '../support/processes/shell.ts'
import { firstValue, migrate, startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { databaseUrl } from '../support/template.ts'

/** Backup and restore of Docker Compose, with the documented commands and a program in place of `docker`. */
const [, , backUp = '', restore = ''] = codeBlocks('Back up and restore')
const folder = await mkdtemp(join(tmpdir(), 'compose-'))
t.teardown(() => rm(folder, { recursive: true }))
const dump = { 'investments.dump': `${folder}/investments.dump` }

const server = await startDebianPostgres(t)
await firstValue(server.url, 'create database investments')
const url = databaseUrl(server.url, 'investments')
const login = await migrate(url)
const requests = requestsOf(await addSampleData(openAsOwner(t, url), 500))
const service = await startServiceProcess(t, { DATABASE_URL: login })

/** As the services of docker-compose.yml: `up` runs `migrate`. It starts no service. */
const docker = `#!/bin/sh -e
cd '${process.cwd()}'
export DATABASE_URL='${url}' SERVICE_DATABASE_PASSWORD='${new URL(login).password}'
case "$*" in
'compose exec -T postgres '*) shift 4 && exec "$@" ;;
'compose stop service')
  kill ${service.process.pid}
  while kill -0 ${service.process.pid} 2>&-; do sleep 0.1; done ;;
'compose up --wait') exec ./operator migrate ;;
'compose run --rm -T migrate operator '*) shift 6 && exec ./operator "$@" ;;
*) exit 125 ;;
esac
`
await writeFile(join(folder, 'docker'), docker)
await chmod(join(folder, 'docker'), 0o755)
const environment = { ...libpqVariables(url), PATH: `${folder}:${process.env.PATH}` }

t.test('200: a restored backup of Compose has the responses of its time', async (t) => {
  const golden = await recordOk(service.url, requests)
  await runShell(t, fillIn(backUp, dump), environment)
  await firstValue(url, 'delete from portfolio_transaction')
  const output = await runShell(t, fillIn(restore, dump), environment)
  t.match(output, 'The schema is up to date.')
  t.match(output, /counts and change numbers agree with \d+ rows/)
  const restored = await startServiceProcess(t, { DATABASE_URL: login })
  t.same(await recordOk(restored.url, requests), golden)
  t.equal(
    await firstValue(
      databaseUrl(url, 'replaced'),
      'select count(*)::int from portfolio_transaction',
    ),
    0,
  )
})
