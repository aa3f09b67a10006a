import type { Socket } from 'node:net'
import type { Test } from 'tap'
import { forward, startTcpProxy } from '../tcp-proxy.ts'

/** Requests for encryption with TLS and GSSAPI, which come before the start of a session. */
const ENCRYPTION = [80_877_103, 80_877_104]

/** Starts a proxy in front of a PostgreSQL server that counts the statements of its clients. */
export async function countStatements(t: Test, url: string) {
  const counted = { url: '', statements: 0 }
  const proxy = await startTcpProxy(t, url, (client: Socket) => {
    let rest = Buffer.alloc(0)
    let hasStarted = false
    forward(client, url, {
      fromClient: (data, { server }) => {
        server.write(data)
        rest = Buffer.concat([rest, data])
        for (;;) {
          // The first messages have no type.
          const typeBytes = hasStarted ? 1 : 0
          if (rest.length < typeBytes + 4) return
          const length = typeBytes + rest.readInt32BE(typeBytes)
          if (rest.length < length) return
          const type = hasStarted ? String.fromCharCode(rest[0] ?? 0) : ''
          // A simple query, or the execution of a prepared statement.
          if (type === 'Q' || type === 'E') counted.statements += 1
          if (!hasStarted) hasStarted = !ENCRYPTION.includes(rest.readInt32BE(4))
          rest = rest.subarray(length)
        }
      },
    })
  })
  counted.url = proxy.href
  return counted
}
