import pg from 'pg'
import { filterRows } from './row-filter.ts'
import { createSockets } from './sockets.ts'

/** Options of a pool whose clients pipeline queries and run raw ones (query.ts). */
export function wireOptions(): pg.PoolConfig & { pipeline: true } {
  return { stream: createSockets(), Client: WireClient, pipeline: true }
}

class WireClient extends pg.Client {
  standby = false

  constructor(config?: string | pg.ClientConfig) {
    super(config)
    filterRows(this)
    connectionOf(this).on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'in_hot_standby') this.standby = parameterValue === 'on'
    })
  }
}

/** True if the server has reported that it is a standby (PostgreSQL 14 and later). */
export function isOnStandby(client: pg.ClientBase): boolean {
  return client instanceof WireClient && client.standby
}

/** Sends the queries of `send` in one packet. */
export function sendTogether(client: pg.ClientBase, send: () => void): void {
  const { stream } = connectionOf(client)
  stream.cork()
  try {
    send()
  } finally {
    stream.uncork()
  }
}

/** Calls the listener when the server sends anything on this connection. */
export function onReceived(client: pg.ClientBase, listener: () => void): void {
  connectionOf(client).stream.on('data', listener)
}

/** Closes the connection at once. Its queries in flight fail with the error. */
export function destroyConnection(client: pg.ClientBase, error: Error): void {
  connectionOf(client).stream.destroy(error)
}

function connectionOf(client: pg.ClientBase): pg.Connection {
  return (client as unknown as { connection: pg.Connection }).connection
}
