import { missingFrom } from '../../../migrations/index.ts'
import { refreshesStatement, serverStatement } from '../../../src/postgres/readiness.ts'
import type { Parameter, Statement } from '../../../src/postgres/statements.ts'
import type { Incoming } from './messages.ts'

/** What the simulated server does for one statement. */
export interface Plan {
  ms: number
  /** Undefined if it reads none that may be locked. */
  table: string | undefined
  readId: number | undefined
  /** Makes its rows, of the snapshot of this moment. */
  rows: () => (string | null)[][]
  failure: Failure | undefined
}

/** An error of one read, and the message of the pipeline that PostgreSQL answers with it. */
export interface Failure {
  at: 'parse' | 'bind' | 'execute' | 'row'
  code: string
}

/** Parameters of a read: the server does and returns what they say. */
export interface ReadParameters {
  token: string
  id: number
  rows: number
  bytes: number
  ms: number
  failure?: Failure | undefined
}

const make = (title: string, table: string, singleRow = false) => ({
  name: `${title} 1`,
  title,
  text: `select * from ${table} -- ${title}`,
  singleRow,
  table,
})

/** Statements of the requests. Two of them read one table. */
export const reads = {
  page: make('page', 'transactions'),
  block: make('block', 'transactions'),
  orders: make('orders', 'orders'),
  lookup: make('lookup', 'connection', true),
}

export type ReadName = keyof typeof reads

const tables = new Map(Object.values(reads).map(({ text, table }) => [text, table]))

export const valuesOf = ({ token, id, rows, bytes, ms, failure }: ReadParameters): Parameter[] => [
  token,
  ...[id, rows, bytes, ms].map(String),
  failure ? `${failure.at}:${failure.code}` : null,
]

/** Id of the statements of health checks. */
const PROBE_ID = -1

/** Returns the id of the read that a message asks for; undefined for other messages. */
export function readIdOf(message: Incoming): number | undefined {
  if (message.type !== 'bind') return undefined
  return message.values.length === 0 ? PROBE_ID : Number(message.values[1])
}

export const PROBED: Statement = { name: 'probe 1', title: 'probe', text: 'select from probe' }

const newest = missingFrom(new Set()).join(',')

/** Returns undefined for a text that is none of the service's. */
export function knows(text: string): boolean {
  return (
    [serverStatement.text, refreshesStatement.text, PROBED.text].includes(text) || tables.has(text)
  )
}

/** Says what a statement with these values does in PostgreSQL. */
export function planOf(
  text: string,
  values: (string | null)[],
  server: { version: string; isStandby: boolean; name: string },
): Plan {
  const plan: Plan = {
    ms: 1,
    table: undefined,
    readId: undefined,
    rows: () => [],
    failure: undefined,
  }
  if (text === serverStatement.text)
    return { ...plan, rows: () => [['18.1', server.isStandby ? 't' : 'f', 'f', newest]] }
  if (text === PROBED.text) return { ...plan, table: 'orders' }
  const table = tables.get(text)
  if (table === undefined) return plan
  const [, id = '', count, bytes, ms, failing] = values
  const [at, code = ''] = failing?.split(':') ?? []
  const failure = at === undefined ? undefined : { at: at as Failure['at'], code }
  const rows = () => {
    const filler = 'x'.repeat(Number(bytes))
    const { version, name, isStandby } = server
    const role = isStandby ? 'standby' : 'primary'
    return Array.from({ length: Number(count) }, (_, n) => [
      id,
      String(n),
      version,
      name,
      role,
      filler,
    ])
  }
  return { ms: Number(ms), table, readId: Number(id), rows, failure }
}
