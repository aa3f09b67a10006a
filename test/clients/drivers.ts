import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { inspect } from 'node:util'
import type { Test } from 'tap'
import {
  type Changes,
  InvestmentData,
  ProblemError,
  type SyncResult,
  TransportError,
} from '../../clients/typescript/src/index.ts'

/** Parameters of a call, the same for both clients. */
export interface Access {
  url: string
  /** Token of the app. */
  token: string
  /** Token of the connection. */
  connection: string
  pageSize?: number
  timeoutMs?: number
  attempts?: number
  maxDelayMs?: number
}

export type ListName = 'portfolio' | 'account'

/** A row as the client returns it, with decimals as text. */
export type Row = Record<string, unknown>

export interface Synchronized {
  pages: Changes<Row>[]
  result: SyncResult
}

/** Error of a client. `shown` is all that a report of the error may show. */
export interface ClientError {
  name: string
  message: string
  code?: string
  status?: number
  requestId?: string
  errors?: unknown[]
  shown: string
}

/** Calls a client. A failed call rejects: see failureOf(). */
export interface Driver {
  list(access: Access, list: ListName, range?: { from?: string; to?: string }): Promise<Row[]>
  orders(access: Access): Promise<Row[]>
  sync(access: Access, list: ListName, cursor?: string): Promise<Synchronized>
}

class DriverError extends Error {
  readonly error: ClientError
  constructor(error: ClientError) {
    super(error.shown)
    this.error = error
  }
}

/** Returns the error of a call that fails. */
export async function failureOf(call: Promise<unknown>): Promise<ClientError> {
  const error = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (error instanceof DriverError) return error.error
  throw error ?? new Error('the call did not fail')
}

const defaults = {
  pageSize: 1000,
  timeoutMs: 20_000,
  attempts: 6,
  baseDelayMs: 1,
  maxDelayMs: 60_000,
}

/** Both clients by the name of their language. */
export function startDrivers(t: Test): Record<'TypeScript' | 'Python', Driver> {
  return { TypeScript: typescript, Python: startPython(t) }
}

function connect(access: Access) {
  const {
    url: baseUrl,
    token,
    connection,
    pageSize,
    timeoutMs,
    ...retry
  } = {
    ...defaults,
    ...access,
  }
  return new InvestmentData({ baseUrl, token, pageSize, timeoutMs, retry }).connection(connection)
}

const typescript: Driver = {
  list: (access, list, range) =>
    reported(async () => {
      const rows: Row[] = []
      const connection = connect(access)
      const iterated =
        list === 'portfolio'
          ? connection.portfolioTransactions(range)
          : connection.accountTransactions(range)
      for await (const row of iterated) rows.push({ ...row })
      return rows
    }),
  orders: (access) =>
    reported(async () => (await connect(access).transferOrders()).map((order) => ({ ...order }))),
  sync: (access, list, cursor) =>
    reported(async () => {
      const pages: Changes<Row>[] = []
      const connection = connect(access)
      const apply = ({ upserts, ...rest }: Changes<object>) => {
        pages.push({ upserts: upserts.map((row) => ({ ...row })), ...rest })
      }
      const result =
        list === 'portfolio'
          ? await connection.syncPortfolioTransactions({ cursor, apply })
          : await connection.syncAccountTransactions({ cursor, apply })
      return { pages, result }
    }),
}

async function reported<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    const { name, message } = error as Error
    const shown = inspect(error, { depth: 10, showHidden: true })
    const found: ClientError = { name, message, shown }
    if (error instanceof ProblemError || error instanceof TransportError) {
      const { code, status } = error
      Object.assign(found, { code, ...(status === undefined ? {} : { status }) })
    }
    if (error instanceof ProblemError)
      Object.assign(found, { requestId: error.requestId, errors: error.errors })
    throw new DriverError(found)
  }
}

/** Starts a process that runs one call after the other. */
function startPython(t: Test): Driver {
  const child = spawn('python3', [`${import.meta.dirname}/driver.py`], {
    env: pythonEnvironment,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  // A call reports that the process is missing.
  child.on('error', () => {})
  child.stdin.on('error', () => {})
  t.teardown(() => child.kill())
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  let queue: Promise<unknown> = Promise.resolve()
  const call = <T>(method: string, access: Access, parameters: object): Promise<T> => {
    const result = queue.then(async () => {
      const line = JSON.stringify({ ...defaults, ...access, ...parameters, method })
      return responseOf<T>(child, lines, line)
    })
    queue = result.catch(() => {})
    return result
  }
  return {
    list: (access, list, range = {}) => call('list', access, { list, ...range }),
    orders: (access) => call('orders', access, {}),
    sync: (access, list, cursor) => call('sync', access, { list, cursor }),
  }
}

async function responseOf<T>(child: ChildProcess, lines: AsyncIterator<string>, line: string) {
  child.stdin?.write(`${line}\n`)
  const { value, done } = await lines.next()
  if (done) throw new Error('python3 3.9 or later is needed: it is not installed, or it ended')
  const response: { value: T; error?: ClientError } = JSON.parse(value)
  if (response.error !== undefined) throw new DriverError(response.error)
  return response.value
}

/** Environment of Python programs that import the client from its folder. */
export const pythonEnvironment = {
  PATH: process.env.PATH,
  PYTHONPATH: `${import.meta.dirname}/../../clients/python/src`,
  PYTHONDONTWRITEBYTECODE: '1',
}
