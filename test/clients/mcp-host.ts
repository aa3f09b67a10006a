/** A client of the server for assistants, and the figures of the same rows, computed another way. */
import type { Test } from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { installMcp } from '../support/clients/mcp-package.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'
import type { Service } from '../support/service.ts'

installMcp()
const { Client, InMemoryTransport } = await import('@modelcontextprotocol/client')
const { createServer, InvestmentData } = await import('../../clients/mcp/src/index.ts')

/** The service of the file that runs. */
export let service: Service

/** Starts the service of a file, before its tests. */
export async function startHostService(t: Test): Promise<void> {
  bodies.length = 0
  secrets.clear()
  for (const secret of [DEMO_TOKEN, DEMO.wealth.expiredToken]) secrets.add(secret)
  service = await startSeededService(t)
}

/** Tokens of 3 bytes. */
export const tokens = (text: string) => Math.ceil(Buffer.byteLength(text) / 3)

/** All answers of all tests, to look for tokens. */
export const bodies: string[] = []
export const secrets = new Set<string>()

export interface Result {
  isError: boolean
  text: string
  /** The line of JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read any field.
  facts: any
  /** The table, by the names of its columns. */
  rows: Record<string, string>[]
}
export type Arguments = Record<string, unknown>
export type McpClient = InstanceType<typeof Client>

export async function call(client: McpClient, name: string, values: Arguments): Promise<Result> {
  const result = await client.callTool({ name, arguments: values })
  bodies.push(JSON.stringify(result))
  const [content] = result.content as { type: string; text: string }[]
  const text = content?.text ?? ''
  const isError = result.isError === true
  if (isError) return { isError, text, facts: {}, rows: [] }
  const [head = '', columns = '', ...lines] = text.split('\n')
  const names = columns.split('\t')
  const rows = lines.map((line) => {
    return Object.fromEntries(line.split('\t').map((cell, index) => [names[index], cell]))
  })
  return { isError, text, facts: JSON.parse(head), rows }
}

export interface Host {
  client: McpClient
  ask: (name: string, values: Arguments) => Promise<Result>
  /** Requests to the service so far. */
  requests: () => number
}

/** Connects a client in memory with a server of its own. */
export async function host(
  t: Test,
  connections: Record<string, string>,
  {
    token = DEMO_TOKEN,
    url = service.url,
    callTimeoutMs = 60_000,
    names,
  }: {
    token?: string
    url?: string
    callTimeoutMs?: number
    names?: Record<string, string>
  } = {},
): Promise<Host> {
  let requests = 0
  const onAttempt = () => {
    requests += 1
  }
  const api = new InvestmentData({ baseUrl: url, token, onAttempt, callTimeoutMs })
  for (const each of [token, ...Object.values(connections)]) secrets.add(each)
  const [one, other] = InMemoryTransport.createLinkedPair()
  await createServer({ api, connections, names }).connect(other)
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(one)
  t.teardown(() => client.close())
  return { client, ask: (name, values) => call(client, name, values), requests: () => requests }
}

export type ExportedRow = Record<string, string | null>
const PATHS = { portfolio: 'portfolios/transactions', account: 'accounts/transactions' }
export type List = keyof typeof PATHS

/** Rows of an export, newest first, with decimals as text. */
export async function exported(connection: string, list: List): Promise<ExportedRow[]> {
  const path = `/api/v1/queries/connections/${connection}/${PATHS[list]}`
  const headers = { accept: 'application/x-ndjson;IEEE754Compatible=true' }
  const { text } = await service.get(path, { token: DEMO_TOKEN, headers })
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

export const dayOf = (row: ExportedRow) => row.operationDateDay ?? row.valueDateDay ?? ''
const SCALE = 40

/** Units of 10 ** -40: another way than that of the client. */
export function units(decimal: string | null | undefined): bigint {
  const [whole = '', fraction = ''] = (decimal || '0').split('.')
  return BigInt(whole + fraction.padEnd(SCALE, '0'))
}

/** Sums of a field over exported rows, by a key of each row. */
export function sums(rows: ExportedRow[], field: string, keyOf: (row: ExportedRow) => string) {
  const found: Record<string, bigint> = {}
  for (const row of rows) {
    if (row[field] === null) continue
    found[keyOf(row)] = (found[keyOf(row)] ?? 0n) + units(row[field])
  }
  return found
}
