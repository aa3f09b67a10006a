import type pg from 'pg'
import { SafeClient } from '../../src/postgres/wire/safe-client.ts'

/** Client that requires that the server has asked for the password. A program that accepts everybody may be another one. */
export class ProvenClient extends SafeClient {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    let proven = false
    this.connection.on('authenticationSASLFinal', () => {
      proven = true
    })
    this.connection.on('authenticationOk', () => {
      if (!proven)
        this.connection.stream.destroy(new Error('The server did not ask for a password.'))
    })
  }
}
