import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { type EmbeddedDatabase, startEmbedded } from './embedded.ts'
import { freePort } from './free-port.ts'

/**
 * Starts the embedded PostgreSQL on a free port of 127.0.0.1, with a password. Tests and the bench need TCP: they put
 * proxies and poolers between the service and PostgreSQL.
 * @param settings settings of postgresql.conf that differ from the defaults, e.g. `{ fsync: 'off' }`
 */
export async function startOverTcp(
  dataDir: string,
  settings: Record<string, string>,
): Promise<EmbeddedDatabase> {
  const port = String(await freePort())
  const listen = { listen_addresses: '127.0.0.1', port }
  const database = await startEmbedded(dataDir, { ...listen, ...settings })
  const password = randomBytes(24).toString('base64url')
  await setPassword(database.url, password)
  return { ...database, url: `postgresql://postgres:${password}@127.0.0.1:${port}/postgres` }
}

/** Gives the superuser of a server a password. `url` is that of its Unix socket. */
export async function setPassword(url: string, password: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(`alter role postgres password '${password}'`).finally(() => client.end())
}
