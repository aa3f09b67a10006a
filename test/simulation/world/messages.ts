/** Messages of PostgreSQL's protocol 3.0, as far as the service sends and reads them. */

export type Incoming =
  | { type: 'startup'; parameters: Record<string, string> }
  | { type: 'cancel'; processId: number; secretKey: number }
  | { type: 'query'; text: string }
  | { type: 'parse'; name: string; text: string }
  | { type: 'bind'; name: string; values: (string | null)[] }
  | { type: 'describe' | 'execute' | 'sync' | 'terminate' }
  | { type: 'unknown'; code: number }

const CANCEL_REQUEST = 80_877_102
const PROTOCOL_3 = 196_608

/** Cuts a stream of bytes from a client into messages. */
export class MessageReader {
  #bytes: Buffer = Buffer.alloc(0)
  #isStarted = false

  read(received: Buffer): Incoming[] {
    this.#bytes = this.#bytes.length === 0 ? received : Buffer.concat([this.#bytes, received])
    const messages: Incoming[] = []
    for (;;) {
      const header = this.#isStarted ? 1 : 0
      if (this.#bytes.length < header + 4) break
      const end = header + this.#bytes.readInt32BE(header)
      if (this.#bytes.length < end) break
      const body = this.#bytes.subarray(header + 4, end)
      const code = this.#bytes[0] as number
      messages.push(this.#isStarted ? messageOf(code, body) : startOf(body))
      this.#isStarted = true
      this.#bytes = this.#bytes.subarray(end)
    }
    return messages
  }
}

function startOf(body: Buffer): Incoming {
  const code = body.readInt32BE(0)
  if (code === CANCEL_REQUEST)
    return { type: 'cancel', processId: body.readInt32BE(4), secretKey: body.readInt32BE(8) }
  if (code !== PROTOCOL_3) return { type: 'unknown', code }
  const texts = body.toString('utf8', 4).split('\0')
  const parameters: Record<string, string> = {}
  for (let at = 0; at + 1 < texts.length && texts[at] !== ''; at += 2)
    parameters[texts[at] as string] = texts[at + 1] as string
  return { type: 'startup', parameters }
}

function messageOf(code: number, body: Buffer): Incoming {
  switch (String.fromCharCode(code)) {
    case 'Q':
      return { type: 'query', text: textAt(body, 0) }
    case 'P': {
      const name = textAt(body, 0)
      return { type: 'parse', name, text: textAt(body, Buffer.byteLength(name) + 1) }
    }
    case 'B':
      return bindOf(body)
    case 'D':
      return { type: 'describe' }
    case 'E':
      return { type: 'execute' }
    case 'S':
      return { type: 'sync' }
    case 'X':
      return { type: 'terminate' }
    default:
      return { type: 'unknown', code }
  }
}

const textAt = (body: Buffer, start: number) => body.toString('utf8', start, body.indexOf(0, start))

function bindOf(body: Buffer): Incoming {
  const portalEnd = body.indexOf(0) + 1
  const name = textAt(body, portalEnd)
  let at = portalEnd + Buffer.byteLength(name) + 1
  at += 2 + 2 * body.readInt16BE(at)
  const count = body.readInt16BE(at)
  at += 2
  const values: (string | null)[] = []
  for (let n = 0; n < count; n += 1) {
    const size = body.readInt32BE(at)
    at += 4
    values.push(size < 0 ? null : body.toString('utf8', at, at + size))
    at += Math.max(0, size)
  }
  return { type: 'bind', name, values }
}

/** What PostgreSQL reports of an error. */
export interface ServerError {
  severity: 'ERROR' | 'FATAL'
  code: string
  message: string
}

/** Writes the messages of a server. PostgreSQL, too, collects them, and sends them at a Sync or when many wait. */
export class MessageWriter {
  #bytes = Buffer.allocUnsafe(4_096)
  #end = 0

  get length(): number {
    return this.#end
  }

  /** Returns what was written since the last call. */
  take(): Buffer {
    const taken = Buffer.from(this.#bytes.subarray(0, this.#end))
    this.#end = 0
    return taken
  }

  authenticationOk(): void {
    this.#message('R', () => this.#int32(0))
  }

  parameterStatus(name: string, value: string): void {
    this.#message('S', () => {
      this.#text(name)
      this.#text(value)
    })
  }

  backendKeyData(processId: number, secretKey: number): void {
    this.#message('K', () => {
      this.#int32(processId)
      this.#int32(secretKey)
    })
  }

  readyForQuery(): void {
    this.#message('Z', () => this.#byte(0x49))
  }

  parseComplete(): void {
    this.#message('1', () => {})
  }

  bindComplete(): void {
    this.#message('2', () => {})
  }

  rowDescription(columns: { name: string; type: number }[]): void {
    this.#message('T', () => {
      this.#int16(columns.length)
      for (const { name, type } of columns) {
        this.#text(name)
        this.#int32(0)
        this.#int16(0)
        this.#int32(type)
        this.#int16(-1)
        this.#int32(-1)
        this.#int16(0)
      }
    })
  }

  dataRow(fields: (string | null)[]): void {
    this.#message('D', () => {
      this.#int16(fields.length)
      for (const field of fields) {
        if (field === null) {
          this.#int32(-1)
          continue
        }
        const sizeAt = this.#end
        this.#int32(0)
        this.#string(field)
        this.#bytes.writeInt32BE(this.#end - sizeAt - 4, sizeAt)
      }
    })
  }

  commandComplete(tag: string): void {
    this.#message('C', () => this.#text(tag))
  }

  error({ severity, code, message }: ServerError): void {
    this.#report('E', severity, code, message)
  }

  notice(message: string): void {
    this.#report('N', 'NOTICE', '00000', message)
  }

  #report(type: string, severity: string, code: string, message: string): void {
    this.#message(type, () => {
      for (const field of [`S${severity}`, `V${severity}`, `C${code}`, `M${message}`])
        this.#text(field)
      this.#byte(0)
    })
  }

  #message(type: string, writeBody: () => void): void {
    this.#byte(type.charCodeAt(0))
    const lengthAt = this.#end
    this.#int32(0)
    writeBody()
    this.#bytes.writeInt32BE(this.#end - lengthAt, lengthAt)
  }

  #reserve(size: number): void {
    if (this.#end + size <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(2 * (this.#end + size))
    this.#bytes.copy(larger, 0, 0, this.#end)
    this.#bytes = larger
  }

  #byte(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#end] = value
    this.#end += 1
  }

  #int16(value: number): void {
    this.#reserve(2)
    this.#end = this.#bytes.writeInt16BE(value, this.#end)
  }

  #int32(value: number): void {
    this.#reserve(4)
    this.#end = this.#bytes.writeInt32BE(value, this.#end)
  }

  #string(value: string): void {
    this.#reserve(3 * value.length)
    this.#end += this.#bytes.write(value, this.#end)
  }

  #text(value: string): void {
    this.#string(value)
    this.#byte(0)
  }
}
