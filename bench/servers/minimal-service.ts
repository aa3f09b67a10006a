import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { TObject, TSchema } from '@sinclair/typebox'
import { bind, type CompiledStatement, type Parameter } from '../../src/postgres/statements.ts'
import { connectionKey, tokenHash } from '../../src/postgres/tokens.ts'
import { LOOKUP_COLUMNS } from '../../src/queries/connection.ts'
import { pagedList } from '../../src/queries/pages.ts'
import { lookupStatements } from '../../src/queries/read.ts'
import { completedOrders } from '../../src/queries/transfer-orders.ts'
import { columnsOf } from '../../src/schemas/fields.ts'
import type { List } from '../../src/schemas/list.ts'
import { PortfolioTransactions } from '../../src/schemas/portfolio-transaction.ts'
import { TransferOrders } from '../../src/schemas/transfer-order.ts'

/** Rows of a result, with the text of each value. */
export type Row = (string | null)[]

/** Runs a statement of the service with its values, prepared. */
export type RunStatement = (text: string, values: Parameter[]) => Promise<Row[]>

let run: RunStatement

/**
 * Serves what is left of the service without a framework and its own protocol: node:http and a library for PostgreSQL, with
 * the statements of the service and the same bytes. It has no log, no limits, no quota and no metrics, and checks no parameter.
 */
export function serveMinimal(runStatement: RunStatement): void {
  run = runStatement
  createServer((request, response) => {
    handle(request, response).catch((error) => {
      process.stderr.write(`${error.stack}\n`)
      response.writeHead(500).end()
    })
  }).listen(Number(process.env.PORT), '127.0.0.1')
}

function read(
  statement: CompiledStatement,
  values: Record<string, Parameter | number>,
): Promise<Row[]> {
  return run(statement.text, bind(statement, values))
}

type WriteRow = (row: Row, at: number) => string

/** Makes a writer of a row whose values begin at a place. */
function writerOf({ item }: List): WriteRow {
  const columns = columnsOf(item as TObject).map(({ path, schema, group }) => {
    const member = JSON.stringify(group ? path.slice(group.name.length + 1) : path)
    const opening = group?.first ? `${JSON.stringify(group.name)}:` : ''
    return { member, opening, group, isText: isText(schema) }
  })
  return (row, at) => {
    let text = ''
    for (let index = 0; index < columns.length; index += 1) {
      const { member, opening, group, isText } = columns[index] as (typeof columns)[number]
      const value = row[at + index] ?? null
      const comma = index === 0 ? '{' : ','
      if (group === undefined || value !== null) {
        const brace = group?.first ? '{' : ''
        const end = group?.last ? '}' : ''
        text += `${comma}${opening}${brace}${member}:${isText ? JSON.stringify(value) : value}${end}`
      } else if (group.first) text += `${comma}${opening}null`
    }
    return `${text}}`
  }
}

const isText = ({ type }: TSchema): boolean => [type].flat().includes('string')

const writeTransaction = writerOf(PortfolioTransactions)
const writeOrder = writerOf(TransferOrders)
const { first, later } = pagedList(PortfolioTransactions).statements
const { all } = completedOrders(TransferOrders).statements

function join(rows: Row[], write: WriteRow, at: number): string {
  let text = ''
  // The first row is the lookup.
  for (let index = 1; index < rows.length; index += 1)
    text += `${index === 1 ? '' : ','}${write(rows[index] as Row, at)}`
  return text
}

interface Keys {
  tokenHash: Buffer
  connectionHash: Buffer
  connectionKey: string
  [name: string]: Parameter
}

async function pageOf(keys: Keys, query: URLSearchParams): Promise<{ rows: Row[]; body: string }> {
  const [from, to] = [query.get('from'), query.get('to')]
  const limit = Number(query.get('limit') ?? 1000)
  const page = Number(query.get('page') ?? 0)
  const values = {
    ...keys,
    from: from ?? '-infinity',
    to: to ?? 'infinity',
    limit,
    offset: limit * page,
  }
  const statement = page === 0 ? first : later
  let rows = await read(statement?.tokenHash as CompiledStatement, values)
  let total = rows[0]?.[TOTAL]
  if (page === 0 && (from !== null || to !== null)) {
    total = String(rows.length - 1)
    if (rows.length - 1 === limit) {
      rows = await read(later?.tokenHash as CompiledStatement, values)
      total = rows[0]?.[TOTAL]
    }
  }
  const items = join(rows, writeTransaction, placeOfItem(rows, PortfolioTransactions))
  const body = `{"items":[${items}],"limit":${limit},"page":${page},"totalItems":${total}}`
  return { rows, body }
}

/** The fields of an item are the last values of a row. */
function placeOfItem([row]: Row[], { item }: List): number {
  return (row?.length ?? 0) - columnsOf(item).length
}

async function ordersOf(keys: Keys): Promise<{ rows: Row[]; body: string }> {
  const rows = await read(all?.tokenHash as CompiledStatement, { ...keys, limit: null })
  return { rows, body: `[${join(rows, writeOrder, placeOfItem(rows, TransferOrders))}]` }
}

const columnOfLookup = (name: keyof typeof LOOKUP_COLUMNS) =>
  Object.keys(LOOKUP_COLUMNS).indexOf(name)
const CONNECTION = columnOfLookup('connection_id')
const VERSION = columnOfLookup('version')
const TOTAL = columnOfLookup('total_items')

function statusOf([lookup]: Row[]): number {
  if (lookup === undefined) return 401
  return lookup[CONNECTION] === null ? 404 : 200
}

const PATH =
  /^\/api\/v1\/queries\/connections\/(\w[\w-]*)\/(portfolios\/transactions|assets-transfer)(?:\?(.*))?$/

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, connection = '', list, query] = PATH.exec(request.url ?? '') ?? []
  if (list === undefined) {
    send(response, 404)
    return
  }
  const connectionHash = tokenHash(connection)
  const keys: Keys = {
    tokenHash: tokenHash((request.headers.authorization ?? '').slice('Bearer '.length)),
    connectionHash,
    connectionKey: connectionKey(connectionHash),
  }
  const known = request.headers['if-none-match']
  if (known !== undefined) {
    const rows = await read(lookupStatements.tokenHash, { ...keys, table: 'portfolio_transaction' })
    if (statusOf(rows) === 200 && known === tagOf(rows)) {
      response.writeHead(304, { etag: known }).end()
      return
    }
  }
  const { rows, body } =
    list === 'assets-transfer'
      ? await ordersOf(keys)
      : await pageOf(keys, new URLSearchParams(query))
  const status = statusOf(rows)
  if (status === 200) send(response, status, body, { etag: tagOf(rows) })
  else send(response, status)
}

const tagOf = (rows: Row[]): string => `W/"${rows[0]?.[VERSION]}"`

function send(
  response: ServerResponse,
  status: number,
  text = '{}',
  headers: Record<string, string> = {},
): void {
  const body = Buffer.from(text)
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    'cache-control': 'private, no-cache',
    ...headers,
  })
  response.end(body)
}
