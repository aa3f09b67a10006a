import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/** TCP proxy between the service and PostgreSQL that simulates network faults. */
export interface Network {
  /** Connection string that leads through the proxy. */
  url: string
  /** Stops forwarding. All connections stay open, and new ones are accepted. */
  pause(): void
  /** Forwards the data that it held back, and all further data. */
  resume(): void
  /** Forwards new connections only. The old ones stay open and silent, as after a router restart. */
  forget(): void
  /** Cuts a connection at every n-th chunk that PostgreSQL sends; 0 stops that. */
  cutEvery(chunks: number): void
  /** Number of cut connections. */
  cuts: number
}

interface Connection {
  client: Socket
  server: Socket
  forgotten: boolean
}

/** @param url connection string of PostgreSQL */
export async function startNetwork(t: Test, url: string): Promise<Network> {
  const { port, hostname } = new URL(url)
  const connections = new Set<Connection>()
  let paused = false
  let cutInterval = 0
  let chunks = 0

  const listener = createServer((client) => {
    const server = connect(Number(port), hostname)
    const connection = { client, server, forgotten: false }
    connections.add(connection)
    const close = () => {
      if (connection.forgotten) return
      client.destroy()
      server.destroy()
      connections.delete(connection)
    }
    for (const socket of [client, server]) socket.on('error', close).on('close', close)
    client.on('data', (data) => server.write(data))
    server.on('data', (data) => {
      chunks += 1
      if (cutInterval === 0 || chunks % cutInterval !== 0) {
        client.write(data)
        return
      }
      network.cuts += 1
      client.write(data.subarray(0, data.length / 2), close)
    })
    if (paused) pauseBoth(connection)
  })
  await once(listener.listen(0, '127.0.0.1'), 'listening')
  const proxied = new URL(url)
  proxied.port = String((listener.address() as AddressInfo).port)
  t.teardown(() => {
    listener.close()
    for (const { client, server } of connections) {
      client.destroy()
      server.destroy()
    }
  })
  const network: Network = {
    url: proxied.href,
    pause: () => {
      paused = true
      for (const connection of connections) pauseBoth(connection)
    },
    resume: () => {
      paused = false
      for (const { client, server, forgotten } of connections)
        if (!forgotten) for (const socket of [client, server]) socket.resume()
    },
    forget: () => {
      paused = false
      for (const connection of connections) connection.forgotten = true
    },
    cutEvery: (interval) => {
      cutInterval = interval
    },
    cuts: 0,
  }
  return network
}

function pauseBoth({ client, server }: Connection): void {
  client.pause()
  server.pause()
}
