import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { AUTHORIZATION, PARTS, type Part, USUAL } from '../../test/support/longest-parts.ts'
import { fillSmall } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
import { wireRequest } from '../load/load-generator.ts'
import { median } from '../load/statistics.ts'
import { digits, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { cpuOf } from '../servers/process-usage.ts'
import { startService, type Target } from '../servers/targets.ts'

const ROUNDS = 5
/** Requests of a price in a round. An address has as many rejections without a delay, so each price has one of its own. */
const REQUESTS = 100

/** Measures the processor time of the service for each part of a request at its longest, divided by that of a usual request. */
export async function measurePrices(server: PostgresServer): Promise<string> {
  return withDatabase(server, async (database) => {
    await fillSmall(database.owner)
    return withServers(async (start) => {
      const service = await start(startService(database.serviceUrl))
      const unknown = await pricesOf(service, [USUAL, AUTHORIZATION, ...PARTS], 'Bearer nobody')
      const known = await pricesOf(service, [USUAL, ...PARTS], service.headers(1).authorization)
      const rows = [USUAL, AUTHORIZATION, ...PARTS].map(({ name }) => [
        name,
        ...[unknown, known].flatMap((prices) => {
          const ms = prices.get(name)
          return [digits(ms), ms && digits(ms / (prices.get(USUAL.name) ?? Number.NaN))]
        }),
      ])
      return table(COLUMNS, rows)
    })
  })
}

const COLUMNS = ['Part', 'unknown caller: CPU ms', '÷ usual', 'known app: CPU ms', '÷ usual']

/** @returns the processor time of a request in ms, by the name of the part: the median of the rounds */
async function pricesOf(
  service: Target,
  parts: Part[],
  authorization = '',
): Promise<Map<string, number>> {
  const found = new Map<string, number[]>(parts.map(({ name }) => [name, []]))
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const part of parts) {
      const ms = await priceOf(service, part, authorization)
      // The first round compiles the hot functions.
      if (round > 0) found.get(part.name)?.push(ms)
    }
    process.stderr.write(`round ${round}\n`)
  }
  return new Map([...found].map(([name, each]) => [name, median(each)]))
}

let addresses = 0

async function priceOf(service: Target, part: Part, authorization: string): Promise<number> {
  const [list = ''] = service.page({ connection: 1, limit: 1, page: 0 }).split('?')
  const headers = { authorization, ...part.headers }
  const { bytes } = wireRequest(list + part.path, headers)
  const before = cpuOf(service.pid)
  addresses += 1
  // Linux has the whole network 127.0.0.0/8.
  const localAddress = `127.1.${Math.floor(addresses / 250)}.${1 + (addresses % 250)}`
  for (let n = 0; n < REQUESTS; n += 1) await exchange(service.port, localAddress, bytes)
  return (cpuOf(service.pid) - before) / REQUESTS
}

const sockets = new Map<string, Socket>()

/** Sends a request on the connection of an address, and reads the response, which has a length. */
async function exchange(port: number, localAddress: string, bytes: Buffer): Promise<void> {
  let socket = sockets.get(localAddress)
  if (socket === undefined || socket.destroyed) {
    socket = connect({ port, host: '127.0.0.1', localAddress })
    sockets.set(localAddress, socket)
    await once(socket, 'connect')
  }
  socket.write(bytes)
  let received = ''
  while (!isWhole(received)) {
    const [chunk] = await once(socket, 'data')
    received += chunk.toString('latin1')
  }
  // The service closes a connection after a request that is too long.
  if (/^connection: close/im.test(received)) socket.destroy()
}

function isWhole(received: string): boolean {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = Number(/^content-length: *(\d+)/im.exec(received)?.[1] ?? 0)
  return received.length >= end + 4 + length
}
