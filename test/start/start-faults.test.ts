import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { startEmbedded } from '../../tools/embedded-postgres/embedded.ts'
import { operator } from '../operator/operator-process.ts'
import { createDatabase } from '../support/database.ts'

const { url } = await createDatabase(t)
const folder = await mkdtemp(join(tmpdir(), 'start-'))
t.teardown(() => rm(folder, { recursive: true, force: true }))

/** Starts the service as `npm start` does; it is expected to end by itself. */
async function start(environment: Record<string, string>) {
  const server = resolve(import.meta.dirname, '../../src/server.ts')
  const { DATABASE_URL: _, ...around } = process.env
  const env = { ...around, HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'silent', ...environment }
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', server], {
    env,
    timeout: 20_000,
  })
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  return { stderr, code }
}

t.test('What keeps the service from listening is one sentence', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const address = taken.address()
  const port = typeof address === 'object' ? String(address?.port) : ''
  t.same(await start({ DATABASE_URL: url, PORT: port }), {
    stderr: `Port ${port} is taken: set PORT to another one.\n`,
    code: 1,
  })
  t.same(await start({ DATABASE_URL: url, HOST: '203.0.113.9' }), {
    stderr: 'HOST is no address of this machine: set it to one that is.\n',
    code: 1,
  })
  t.same(await start({ DATABASE_URL: url, HOST: 'nowhere.invalid' }), {
    stderr: 'HOST names no address: set it to one of this machine.\n',
    code: 1,
  })
})

t.test('So is what keeps its own database from starting', async (t) => {
  const file = join(folder, 'file')
  await writeFile(file, '')
  t.same(await start({ DATA_DIR: file }), {
    stderr: `${file} cannot be a folder for data (EEXIST): set DATA_DIR to another one.\n`,
    code: 1,
  })
  if (existsSync('/proc/self')) {
    // What is asked to make a folder in it says that it is not there itself.
    for (const dataDir of ['/proc/none', '/proc']) {
      const sentence = `${dataDir} cannot be a folder for data (ENOENT): set DATA_DIR to another one.\n`
      t.same(await start({ DATA_DIR: dataDir }), { stderr: sentence, code: 1 })
      t.match(await operator(['app', 'list'], { env: { DATA_DIR: dataDir } }), {
        stderr: sentence,
        code: 1,
      })
    }
  }
  const running = await startEmbedded(join(folder, 'data', 'within'))
  t.teardown(() => running.stop())
  t.same(await start({ DATA_DIR: join(folder, 'data', 'within') }), {
    stderr: `The embedded database in ${join(folder, 'data', 'within')} is in use: another process has started it.\n`,
    code: 1,
  })
})
