import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/**
 * Listens for connections in place of the server of a URL.
 * @param onClient connects each client to the server, or not
 * @returns the URL with the port of the proxy
 */
export async function startTcpProxy(
  t: Test,
  url: string,
  onClient: (client: Socket) => void,
): Promise<URL> {
  const proxy = createServer(onClient)
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => proxy.close())
  return Object.assign(new URL(url), { port: (proxy.address() as AddressInfo).port })
}
