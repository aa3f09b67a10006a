import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ListenOptions, type Server } from 'node:net'

const FIRST = 20_000
/** From here on, Linux gives ports to connections, and to servers without a port of their own. */
const END = 32_768

/** Sockets that reserve the ports of this process until it ends. */
const reservations: Server[] = []

/**
 * Finds a port of 127.0.0.1 on which nothing listens. No other process gets the same port from this function while
 * this process runs, also if the server on the port is stopped and started again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END)
    if ((await reserve(port)) && (await isFree(port))) return port
  }
}

/** An abstract Unix socket has one owner, and Linux removes it with the process. Other systems have none. */
async function reserve(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return true
  const reservation = await listen({ path: `\0investment-data-port-${port}` })
  if (reservation !== undefined) reservations.push(reservation.unref())
  return reservation !== undefined
}

async function isFree(port: number): Promise<boolean> {
  const server = await listen({ port, host: '127.0.0.1' })
  server?.close()
  if (server !== undefined) await once(server, 'close')
  return server !== undefined
}

async function listen(options: ListenOptions): Promise<Server | undefined> {
  const server = createServer().listen(options)
  return await once(server, 'listening').then(
    () => server,
    () => undefined,
  )
}
