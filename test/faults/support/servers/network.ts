import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A network between the service and the database, to be damaged at will. */
export interface Wire {
  /** The connection string that leads over it. */
  url: string
  /** From now on nothing is forwarded, and nothing closed; new connections are taken, too. */
  silence(): void
  /** What was held back is forwarded. */
  resume(): void
  /** New connections work again, those from before never do: a router that has forgotten them. */
  forget(): void
  /** Cuts connections while the database sends rows over them: one piece in so many. */
  cut(oneIn: number): void
  /** How many were cut. */
  cuts: number
}

interface Line {
  client: Socket
  server: Socket
  dead: boolean
}

export async function layWire(t: Test, url: string): Promise<Wire> {
  const { port, hostname } = new URL(url)
  const lines = new Set<Line>()
  let silent = false
  let oneIn = 0
  let pieces = 0

  const listener = createServer((client) => {
    const server = connect(Number(port), hostname)
    const line = { client, server, dead: false }
    lines.add(line)
    const end = () => {
      if (line.dead) return
      client.destroy()
      server.destroy()
      lines.delete(line)
    }
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
    client.on('data', (data) => server.write(data))
    server.on('data', (data) => {
      pieces += 1
      if (oneIn === 0 || pieces % oneIn !== 0) {
        client.write(data)
        return
      }
      wire.cuts += 1
      client.write(data.subarray(0, data.length / 2), end)
    })
    if (silent) hush(line)
  })
  await once(listener.listen(0, '127.0.0.1'), 'listening')
  const own = new URL(url)
  own.port = String((listener.address() as AddressInfo).port)
  t.teardown(() => {
    listener.close()
    for (const { client, server } of lines) {
      client.destroy()
      server.destroy()
    }
  })
  const wire: Wire = {
    url: own.href,
    silence: () => {
      silent = true
      for (const line of lines) hush(line)
    },
    resume: () => {
      silent = false
      for (const { client, server, dead } of lines)
        if (!dead) for (const one of [client, server]) one.resume()
    },
    forget: () => {
      silent = false
      for (const line of lines) line.dead = true
    },
    cut: (every) => {
      oneIn = every
    },
    cuts: 0,
  }
  return wire
}

function hush({ client, server }: Line): void {
  client.pause()
  server.pause()
}
