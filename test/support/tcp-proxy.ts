import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/**
 * Listens for connections in place of the server of a URL.
 * @param onClient connects each client to the server with forward(), or not
 * @returns the URL with the address of the proxy
 */
export async function startTcpProxy(
  t: Test,
  url: string,
  onClient: (client: Socket) => void,
): Promise<URL> {
  const clients = new Set<Socket>()
  const proxy = createServer({ noDelay: true }, (client) => {
    clients.add(client)
    client.on('close', () => clients.delete(client))
    onClient(client)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    proxy.close()
    for (const client of clients) client.destroy()
  })
  const { port } = proxy.address() as AddressInfo
  // The server may be on another address, such as that of a container.
  return Object.assign(new URL(url), { hostname: '127.0.0.1', port })
}

export interface Pair {
  client: Socket
  server: Socket
}

interface Handlers {
  /** Receives what the client sends; without it, the server does. */
  fromClient?(data: Buffer, pair: Pair): void
  /** Receives what the server sends; without it, the client does. */
  fromServer?(data: Buffer, pair: Pair): void
  /** Decides whether the end of one side ends the other; by default it does. */
  ends?(): boolean
}

/** Connects a client to the server of a URL. */
export function forward(client: Socket, url: string, handlers: Handlers = {}): Pair {
  const { fromClient, fromServer, ends = () => true } = handlers
  const { port, hostname } = new URL(url)
  const pair: Pair = { client, server: connect(Number(port), hostname) }
  const { server } = pair
  if (fromClient === undefined) client.pipe(server)
  else client.on('data', (data) => fromClient(data, pair))
  if (fromServer === undefined) server.pipe(client)
  else server.on('data', (data) => fromServer(data, pair))
  for (const socket of [client, server]) socket.on('error', () => {})
  client.on('close', () => {
    if (ends()) server.destroy()
  })
  // The client receives what the server has sent before its end.
  server.on('close', () => {
    if (ends()) client.end()
  })
  return pair
}
