import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { OperatorError } from '../../src/operator-error.ts'
import { checkServerUrls } from '../../src/postgres/server-urls.ts'
import { startOverTcp } from '../../tools/embedded-postgres/tcp.ts'
import { startCitus } from './citus.ts'

/** A PostgreSQL server for one test run. */
export interface Server {
  /** Connection string of a superuser. */
  url: string
  stop(): Promise<unknown>
}

const settings = {
  // Durability is useless here: a crash of the machine ends the test run.
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  // Saves 1 ms of processor time of each new connection.
  scram_iterations: '1',
}

/**
 * Returns the server of the test run: the one at TEST_DATABASE_URL, if set. With
 * TEST_POSTGRES=container, starts the image of docker-compose.yml. With TEST_POSTGRES=citus, starts a
 * cluster of Citus. Otherwise starts an embedded server in a temporary folder.
 * @throws OperatorError if this machine has no such server
 */
export async function startPostgres(environment: NodeJS.ProcessEnv): Promise<Server> {
  const { TEST_DATABASE_URL: url, TEST_POSTGRES: mode = 'embedded' } = environment
  if (url) return useServer(url)
  if (mode === 'container') return startContainer()
  if (mode === 'citus') return startCitus()
  if (mode === 'embedded') return startInTemporaryFolder()
  throw new OperatorError(`TEST_POSTGRES must be embedded, container or citus, not ${mode}.`)
}

async function useServer(url: string): Promise<Server> {
  const check = async () => serverProblem(checkServerUrls(url))
  const problem = await check().catch(({ message }: Error) => message)
  if (problem) throw new OperatorError(`TEST_DATABASE_URL ${problem}.`)
  return { url, stop: async () => {} }
}

/** The tests clone databases with STRATEGY, which PostgreSQL 15 introduced. */
const MINIMUM_VERSION = 15

/** Returns the reason why the tests cannot use a server. */
async function serverProblem(url: string): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  // A server that stops reports the error to the statement, too.
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query(`select current_setting('server_version') as version,
      current_setting('is_superuser') = 'on' as superuser, current_user as role`)
    const [{ version, superuser, role }] = rows
    if (Number.parseInt(version, 10) < MINIMUM_VERSION)
      return `is a server of PostgreSQL ${version}: the tests need ${MINIMUM_VERSION} or later`
    return superuser ? undefined : `has the role ${role}: the tests need a superuser`
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    return `cannot be used: ${message || code}`
  } finally {
    await client.end()
  }
}

async function startInTemporaryFolder(): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'investment-data-test-'))
  // If root cannot create a user namespace, PostgreSQL runs as another user, who needs access.
  await chmod(folder, 0o711)
  const database = await startOverTcp(folder, settings)
  const stop = () => database.stop().then(() => rm(folder, { recursive: true }))
  return { url: database.url, stop }
}

async function startContainer(): Promise<Server> {
  // The packages of testcontainers take 200 ms to load.
  const container = await import('./container.ts')
  const compose = await readFile('docker-compose.yml', 'utf8')
  const image = /^ +image: (postgres:\S+)$/m.exec(compose)?.[1]
  if (!image) throw new Error('docker-compose.yml names no image of PostgreSQL.')
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const password = 'only-in-this-container'
  return container.startContainer(image, password, ['postgres', ...flags]).catch((error: Error) => {
    const { message } = error
    throw new OperatorError(`TEST_POSTGRES=container needs Docker and ${image}: ${message}.`)
  })
}
