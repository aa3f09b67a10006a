import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Ports below those that Linux gives to connections and to servers without a port of their own (32768). */
const [FIRST, END] = [20_000, 32_768]

/**
 * Finds a port of 127.0.0.1 on which nothing listens. Another process may take it before the caller does: a
 * random port makes this unlikely.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
