/** Runs calls of the TypeScript client as driver.py does: one JSON line in, one out. */
import { createInterface } from 'node:readline'
import {
  type Access,
  type CopyOptions,
  DriverError,
  type ListName,
  openBetterSqlite,
  type Reading,
  typescript,
} from './drivers.ts'

interface Line extends Access, CopyOptions {
  method: 'copy' | 'read' | 'sync' | 'orders'
  file: string
  name: string
  list: Reading
  cursor?: string
}

const isBetterSqlite = process.argv.includes('--better-sqlite3')
const driver = isBetterSqlite ? typescript(openBetterSqlite()) : typescript()

function run({ method, file, name, list, cursor, ...access }: Line): Promise<unknown> {
  const { history, pages, killAt, failAt, now, app, poolSize, ...rest } = access
  if (method === 'orders') return driver.orders(rest)
  if (method === 'sync') return driver.sync(rest, list as ListName, cursor)
  if (method === 'read') return driver.read(file, name, list)
  const options = { history, pages, killAt, failAt, now, app, poolSize } as CopyOptions
  return driver.copy(rest, file, name, options)
}

for await (const line of createInterface({ input: process.stdin })) {
  const response = await run(JSON.parse(line)).then(
    (value) => ({ value }),
    (error) => ({ error: error instanceof DriverError ? error.error : String(error) }),
  )
  process.stdout.write(`${JSON.stringify({ ...driver.seen, ...response })}\n`)
}
