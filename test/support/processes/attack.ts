/*
 * Sends requests in closed loops, each on its own connection, until the process ends. It opens a closed connection
 * again. The only argument is an Attack as JSON. A separate process, so that the clients of the test are not late.
 */
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'

export interface Attack {
  port: number
  /** Client addresses, such as 127.2.0.1. */
  addresses: string[]
  /** Connections of each address. */
  connections: number
  path: string
  /** RANDOM becomes other random text in each request. */
  token: string
}

const { port, addresses, connections, path, token }: Attack = JSON.parse(String(process.argv[2]))

const random = () => randomBytes(32).toString('base64url')
const request = () =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token.replaceAll('RANDOM', random)}\r\n\r\n`

const counts: Record<string, number> = { closed: 0 }

function attack(localAddress: string): void {
  const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true })
  socket.setEncoding('latin1').on('error', () => {})
  // Characters of the response that are missing. Infinite for a chunked one.
  let missing = 0
  socket.on('connect', () => socket.write(request()))
  socket.on('data', (chunk) => {
    const text = String(chunk)
    if (missing === 0) {
      const [head] = text.split('\r\n\r\n', 1) as [string]
      const status = head.slice(9, 12)
      counts[status] = (counts[status] ?? 0) + 1
      const length = /^content-length: (\d+)/im.exec(head)?.[1]
      missing = length === undefined ? Infinity : head.length + 4 + Number(length)
    }
    missing = text.endsWith('\r\n0\r\n\r\n') ? 0 : missing - text.length
    if (missing === 0) socket.write(request())
  })
  socket.on('close', () => {
    counts.closed = Number(counts.closed) + 1
    setTimeout(attack, 1, localAddress)
  })
}

for (const address of addresses) for (let n = 0; n < connections; n += 1) attack(address)
setInterval(() => process.stdout.write(`${JSON.stringify(counts)}\n`), 200)
