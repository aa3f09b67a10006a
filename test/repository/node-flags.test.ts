import { readFile } from 'node:fs/promises'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'

/** Every way to start the service has the same options of Node.js: memory and delays were measured with them. */

const read = (file: string) => readFile(file, 'utf8')

/** Options of Node.js before `src/server.js`, or before the end of the line. */
const optionsIn = (command: string) => command.match(/--[a-z0-9-]+(=[^\s",]+)?/gi) ?? []

const { scripts } = JSON.parse(await read('package.json'))
const expected = optionsIn(scripts.start)

t.test('npm start: options of Node.js', (t) => {
  t.ok(expected.some((option) => option.startsWith('--max-semi-space-size=')))
  t.end()
})

t.test('image: the options of npm start, also where it compiles the modules', async (t) => {
  const dockerfile = await read('Dockerfile')
  const [, entrypoint = ''] = /^ENTRYPOINT (.*)$/m.exec(dockerfile) ?? []
  t.same(optionsIn(entrypoint), expected)
  const [compiling = ''] = /node --.*src\/server\.js/.exec(dockerfile) ?? []
  t.same(optionsIn(compiling), expected)
})

t.test('systemd: the options of npm start', async (t) => {
  const unit = await read('deploy/systemd/investment-data-query@.service')
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
  t.same(optionsIn(command), expected)
})

t.test('Kubernetes and Compose: the command of the image', async (t) => {
  const documents = parseAllDocuments(await read('deploy/kubernetes/service.yaml'))
  const containers = documents.flatMap(
    (document) => document.toJS().spec?.template?.spec?.containers ?? [],
  )
  t.equal(containers.length, 1)
  for (const key of ['command', 'args']) t.notHas(containers[0], key)
  const { services } = parse(await read('docker-compose.yml'), { merge: true })
  for (const key of ['entrypoint', 'command']) t.notHas(services.service, key)
})
