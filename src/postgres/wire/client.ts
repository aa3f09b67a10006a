import pg from 'pg'
import { filterRows } from './row-filter.ts'

/** Client that pipelines queries and runs raw ones (query.ts). */
export class WireClient extends pg.Client {
  /** True if the server has reported that it is a standby (PostgreSQL 14 and later). */
  standby = false

  constructor(config: pg.ClientConfig) {
    super({ ...config, pipeline: true })
    filterRows(this)
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'in_hot_standby') this.standby = parameterValue === 'on'
    })
  }

  /** Sends the queries of `send` in one packet. */
  sendTogether(send: () => void): void {
    const { stream } = this.connection
    stream.cork()
    try {
      send()
    } finally {
      stream.uncork()
    }
  }

  /** Closes the connection at once. Its queries in flight fail with the error. */
  destroy(error?: Error): void {
    this.connection.stream.destroy(error)
  }
}
