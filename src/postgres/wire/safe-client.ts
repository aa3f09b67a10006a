import pg from 'pg'

const { getStartupConf } = pg.Client.prototype as unknown as SafeClient

/**
 * Client that gives its password to no server in a readable form. pg sends it, or an MD5 of it, to whoever asks:
 * without TLS, another program on the port or a machine in between. SCRAM does not reveal it.
 */
export class SafeClient extends pg.Client {
  readonly #options: string | undefined

  constructor(config?: string | pg.ClientConfig) {
    super(config)
    if (typeof config === 'object') this.#options = config.options
    // Before the listeners of pg, which send the password.
    this.connection.on('authenticationCleartextPassword', () => this.#refuse('in clear text'))
    this.connection.on('authenticationMD5Password', () => this.#refuse('as MD5'))
    // Without a password, pg leaves its socket open until PostgreSQL's authentication_timeout (60 s).
    this.connection.on('error', () => this.destroy())
  }

  /** Returns the startup parameters. pg sets no DateStyle, and a database or role may have another one. */
  getStartupConf(): Record<string, string> {
    const parameters = getStartupConf.call(this)
    // pg takes only the options of the URL, if it has any. The last ones count.
    const options = `${parameters.options} ${this.#options}`
    return { ...parameters, ...(this.#options && { options }), DateStyle: 'ISO, MDY' }
  }

  /** Closes the connection at once. Its queries in flight fail with the error. */
  destroy(error?: Error): void {
    this.connection.stream.destroy(error)
  }

  #refuse(form: string): void {
    const { stream } = this.connection
    if ('encrypted' in stream && stream.encrypted === true) return
    stream.destroy(
      new Error(
        `The server asks for the password ${form}, and the connection has no TLS. Use TLS (sslmode=verify-full), or a ` +
          'password that the server stores as scram-sha-256.',
      ),
    )
  }
}
