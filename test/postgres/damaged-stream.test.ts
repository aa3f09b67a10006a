import { readFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { openDatabase } from '../../src/postgres/database.ts'
import { contextOf, createDatabase } from '../support/database.ts'
import { forward, startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

const { url } = await createDatabase(t)
const echo = { name: 'echo', title: 'echo', text: 'select $1::text || generate_series(1, $2::int)' }
/** The DataRow message with one field of two bytes. */
const rowOf = (text: string) => Buffer.from(`D\0\0\0\x0c\0\x01\0\0\0\x02${text}`, 'latin1')

/** Opens the database through a proxy that replaces bytes of the server. */
async function openThrough(t: Test, bytes: Buffer, replacement: Buffer) {
  const through = await startTcpProxy(t, url, (client) =>
    forward(client, url, {
      fromServer: (data) => {
        const at = data.indexOf(bytes)
        if (at < 0) return client.write(data)
        const parts = [data.subarray(0, at), replacement, data.subarray(at + bytes.length)]
        return client.write(Buffer.concat(parts))
      },
    }),
  )
  const limits = { size: 2, waitMs: 20_000, statementTimeoutMs: 20_000, pooler: false }
  const db = openDatabase({ ...limits, url: through.href })
  t.teardown(() => db.close())
  const read = async (values: string[]) => {
    const rows = await db.read(echo, values, contextOf())
    return Array.from({ length: rows.count }, () => rows.shift()?.[0])
  }
  return { read, port: Number(through.port) }
}

t.test('lost row: the read fails, and the next one succeeds', async (t) => {
  const { read } = await openThrough(t, rowOf('a2'), Buffer.alloc(0))
  const message = 'the rows of a response did not all arrive'
  await t.rejects(read(['a', '3']), { name: 'ServerFailed', cause: { message } })
  t.same(await read(['b', '3']), ['b1', 'b2', 'b3'])
})

t.test('message of an impossible length: the read fails, and the next one succeeds', async (t) => {
  const damaged = rowOf('a2')
  damaged.writeInt32BE(2, 1)
  const { read } = await openThrough(t, rowOf('a2'), damaged)
  const message = 'the server sent a message that is not PostgreSQL'
  await t.rejects(read(['a', '3']), { name: 'ServerFailed', cause: { message } })
  t.same(await read(['b', '3']), ['b1', 'b2', 'b3'])
})

t.test('connection without traffic: TCP keep-alive is on', async (t) => {
  const { read, port } = await openThrough(t, rowOf('a2'), rowOf('a2'))
  await read(['b', '1'])
  // Lines of Linux: local address, remote address, state, queues, and `02:` for a keep-alive timer.
  const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const timer = new RegExp(`${remote} 01 [0-9A-F:]+ 02:`)
  await until('the kernel has a keep-alive timer', async () =>
    timer.test(await readFile('/proc/net/tcp', 'utf8')),
  )
})
