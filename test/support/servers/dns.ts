import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

const A = 1
const HEADER_BYTES = 12

/**
 * Starts a DNS server on 127.0.0.1. As that of Docker, it returns the addresses of all instances for each name.
 * @param addresses IPv4, read for each query
 * @returns its port
 */
export async function startDns(t: Test, addresses: Iterable<string>): Promise<number> {
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    // The question: labels until an empty one, type and class. HAProxy adds an EDNS record after it.
    const end = query.indexOf(0, HEADER_BYTES) + 5
    const type = query.readUInt16BE(end - 4)
    const found = type === A ? [...addresses] : []
    const header = Buffer.alloc(HEADER_BYTES)
    header.writeUInt16BE(query.readUInt16BE(0))
    header.writeUInt16BE(0x81_80, 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(found.length, 6)
    const records = found.map((each) =>
      // A pointer to the name in the question, type A, class IN, 600 s, four bytes.
      Buffer.from([
        0xc0,
        HEADER_BYTES,
        0,
        A,
        0,
        1,
        0,
        0,
        2,
        88,
        0,
        4,
        ...each.split('.').map(Number),
      ]),
    )
    socket.send(
      Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...records]),
      port,
      address,
    )
  })
  socket.bind(0, '127.0.0.1')
  t.teardown(() => socket.close())
  await once(socket, 'listening')
  return (socket.address() as AddressInfo).port
}
