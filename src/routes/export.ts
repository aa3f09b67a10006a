import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { TObject } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { representationOf, schemaFingerprint, sendResponse } from '../http/conditional-requests.ts'
import { CSV, EXACT_NDJSON, LIST_TYPES, NDJSON, negotiate } from '../http/media-types.ts'
import { accountTransactionQueries } from '../queries/account-transactions.ts'
import { BLOCK_ROWS, transactionExport } from '../queries/export.ts'
import type { ListRequest, TransactionQueries } from '../queries/list-page.ts'
import { portfolioTransactionQueries } from '../queries/portfolio-transactions.ts'
import { AccountTransaction } from '../schemas/account-transaction.ts'
import { ListQuery } from '../schemas/list.ts'
import { PortfolioTransaction } from '../schemas/portfolio-transaction.ts'
import {
  charge,
  connectionRequest,
  type RouteOptions,
  rejectParameters,
} from './connection-request.ts'
import { excludedErrors, listErrors } from './paging.ts'

/** Media types of exports: the format of the rows, and the end of the file name. */
const EXPORTS = {
  [NDJSON]: { format: 'json', extension: 'ndjson' },
  [EXACT_NDJSON]: { format: 'exactJson', extension: 'ndjson' },
  [CSV]: { format: 'csv', extension: 'csv' },
} as const

const exportOf = (accept: string | undefined) =>
  EXPORTS[negotiate(accept, LIST_TYPES) as keyof typeof EXPORTS]

/**
 * Routes of the exports: the paths of the two transaction lists, for requests that accept the media type of
 * an export. All other requests have the routes of the lists, which import nothing of this.
 */
export async function exports(app: FastifyInstance, options: RouteOptions): Promise<void> {
  app.addConstraintStrategy({
    name: 'export',
    storage: () => new Map(),
    deriveConstraint: ({ headers }) => (exportOf(headers.accept) ? true : undefined),
  })
  exportRoute(app, options, {
    path: '/connections/:token/portfolios/transactions',
    name: 'portfolio-transactions',
    item: PortfolioTransaction,
    queries: portfolioTransactionQueries,
  })
  exportRoute(app, options, {
    path: '/connections/:token/accounts/transactions',
    name: 'account-transactions',
    item: AccountTransaction,
    queries: accountTransactionQueries,
  })
}

interface List {
  path: string
  /** Start of the file name. */
  name: string
  item: TObject
  queries: TransactionQueries
}

function exportRoute(
  app: FastifyInstance,
  options: RouteOptions,
  { path, name, item, queries }: List,
): void {
  const fingerprint = schemaFingerprint(item)
  const exportRows = transactionExport(queries, item)
  const routeOptions = {
    // The routes of the lists document it.
    schema: { hide: true, querystring: ListQuery(options.maximumLimit) },
    attachValidation: true,
    constraints: { export: true },
  }
  app.get(path, routeOptions, async ({ method, headers }, reply) => {
    const { format, extension } = exportOf(headers.accept)
    const request = await exportRequest(options, reply, fingerprint)
    const response = await charge(options, reply, exportRows(options.db, format, request))
    if (response.body !== undefined) {
      const { from, to } = request
      const file = [name, from && `from-${from}`, to && `to-${to}`].filter(Boolean).join('-')
      reply.headers({
        'x-total-count': response.meta.totalItems,
        'content-disposition': `attachment; filename="${file}.${extension}"`,
      })
    }
    if (method !== 'HEAD' || response.body === undefined) {
      resetIfCut(reply, response.body)
      return sendResponse(reply, request, response)
    }
    ;(response.body as Readable).destroy()
    // Fastify would read all rows.
    return sendResponse(reply, request, { ...response, body: Readable.from([]) })
  })
}

/** Connections of exports over HTTP/1.0 that have not ended. */
const unfinished = new Set<Socket>()

process.on('exit', () => {
  for (const socket of unfinished) socket.resetAndDestroy()
})

/**
 * Over HTTP/1.0, the end of the connection is the end of the body. A reset shows that the body is cut: by
 * an error, after CLIENT_STALL_MS, or when the process exits after SHUTDOWN_GRACE_MS.
 */
function resetIfCut({ request, raw }: FastifyReply, body: unknown): void {
  const { httpVersion, socket } = request.raw
  if (httpVersion !== '1.0' || !(body instanceof Readable)) return
  unfinished.add(socket)
  socket.once('close', () => unfinished.delete(socket))
  raw.once('timeout', () => socket.resetAndDestroy())
  body.once('error', () => socket.resetAndDestroy())
}

const NOT_IN_EXPORTS = ['limit', 'page', 'since', 'version']

/** @throws InvalidToken, ExpiredToken, or an HttpError that lists all invalid parameters */
async function exportRequest(
  options: RouteOptions,
  reply: FastifyReply,
  fingerprint: string,
): Promise<ListRequest> {
  const { from, to } = reply.request.query as ListQuery
  const excluded = excludedErrors(reply.request, NOT_IN_EXPORTS, 'in an export')
  const others = listErrors(reply.request, options.maximumLimit).filter(
    ({ parameter }) => !NOT_IN_EXPORTS.includes(parameter),
  )
  await rejectParameters(options, reply, [...excluded, ...others])
  const representation = representationOf(fingerprint, from, to)
  const request = connectionRequest(options, reply, representation, BLOCK_ROWS, LIST_TYPES)
  // HEAD needs the total only.
  const limit = reply.request.method === 'HEAD' ? 0 : BLOCK_ROWS
  return { ...request, from, to, since: undefined, limit, page: 0 }
}
