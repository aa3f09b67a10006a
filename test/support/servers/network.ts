import type { Test } from 'tap'
import { forward, type Pair, startTcpProxy } from '../tcp-proxy.ts'

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

interface Connection extends Pair {
  forgotten: boolean
}

/** @param url connection string of PostgreSQL */
export async function startNetwork(t: Test, url: string): Promise<Network> {
  const connections = new Set<Connection>()
  let paused = false
  let cutInterval = 0
  let chunks = 0

  const proxied = await startTcpProxy(t, url, (client) => {
    const fromServer = (data: Buffer) => {
      chunks += 1
      if (cutInterval === 0 || chunks % cutInterval !== 0) {
        client.write(data)
        return
      }
      network.cuts += 1
      client.write(data.subarray(0, data.length / 2), () => client.destroy())
    }
    const ends = () => !connection.forgotten
    const pair = forward(client, url, { fromServer, ends })
    const connection = { ...pair, forgotten: false }
    connections.add(connection)
    client.on('close', () => {
      if (!connection.forgotten) connections.delete(connection)
    })
    if (paused) pauseBoth(connection)
  })
  t.teardown(() => {
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

function pauseBoth({ client, server }: Pair): void {
  client.pause()
  server.pause()
}
