import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Config } from '../config.ts'
import type { Limits } from '../limits/limits.ts'
import { Shares } from '../limits/shares.ts'
import { poolSizes } from '../postgres/server.ts'
import { serverUrls } from '../postgres/server-urls.ts'

/** Connections of clients, if the process may open as many files. Each one needs memory, even when idle. */
export const MAX_SOCKETS = 5_000

/** Files of Node.js itself, log, metrics and Redis. */
const RESERVED_FILES = 100

/** Returns MAX_SOCKETS, or less so that clients leave files for connections to PostgreSQL. */
export function socketLimit({ DATABASE_POOL_SIZE, DATABASE_REPLICA_URL = '' }: Config): number {
  const report: { userLimits?: { open_files: { soft: number | 'unlimited' } } } =
    process.report.getReport()
  const files = report.userLimits?.open_files.soft
  if (typeof files !== 'number') return MAX_SOCKETS
  const servers = 1 + serverUrls(DATABASE_REPLICA_URL).length
  const { small, large } = poolSizes(DATABASE_POOL_SIZE)
  // One more finds the primary.
  const free = files - servers * (small + large + 1) - RESERVED_FILES
  return Math.min(MAX_SOCKETS, Math.max(1, free))
}

/** Closes new connections of an address that has three quarters of them: it could otherwise hold all, also without requests. */
export function shareSockets(server: Server, { tenants }: Limits): void {
  const open = new Shares()
  server.on('connection', (socket: Socket) => {
    const tenant = tenants.of(socket.remoteAddress ?? '')
    if (!open.mayTake(tenant, 1, server.maxConnections || MAX_SOCKETS)) {
      socket.destroy()
      return
    }
    open.add(tenant, 1)
    onDestroy(socket, () => open.add(tenant, -1))
  })
}

/**
 * Calls a function once, when a socket is destroyed. A listener of `close` would do the same. But with a listener of any
 * event on the socket, Node.js 24 keeps the objects of each request until the next full garbage collection: of 65 requests,
 * a scavenge then promotes 276 KB instead of 16 KB. With Node.js 26.10, test/load/promoted-objects.test.ts passes with the
 * listener: use it when 26 is the oldest version that the service runs on.
 */
function onDestroy(socket: Socket, listener: () => void): void {
  const destroy = socket._destroy
  socket._destroy = (error, callback) => {
    listener()
    destroy.call(socket, error, callback)
  }
}
