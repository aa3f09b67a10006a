import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { sendResponse } from '../http/representation.ts'
import type { ReadResponse } from '../queries/read-response.ts'
import type { ListRequest } from '../queries/transactions.ts'
import type { ExportFormat } from './request.ts'

export function sendPage(
  reply: FastifyReply,
  request: ListRequest,
  response: ReadResponse,
): FastifyReply | Promise<FastifyReply> {
  if (response.body !== undefined) {
    const isPage = request.since === undefined
    const links = isPage
      ? pageLinks(request, response.meta.totalItems)
      : changeLinks(request, response)
    reply.header('link', links)
  }
  return sendResponse(reply, request, response)
}

function changeLinks(request: ListRequest, { nextCursor }: ReadResponse): string {
  const first = `<?since=start&limit=${request.limit}>; rel="first"`
  if (nextCursor === undefined) return first
  return `${first}, <?since=${nextCursor}&limit=${request.limit}>; rel="next"`
}

/**
 * Returns the Link header of a page (RFC 8288, contract 23) with first, prev, next and last. On the
 * last page and after it, there is no `next`. Targets are relative: the path contains the connection
 * token, and proxies log headers (contract 21).
 */
function pageLinks({ from, to, limit, page, version }: ListRequest, totalItems: number): string {
  const last = Math.max(0, Math.ceil(totalItems / limit) - 1)
  const start = `<?${from ? `from=${from}&` : ''}${to ? `to=${to}&` : ''}limit=${limit}&page=`
  const end = `${version ? `&version=${version}` : ''}>; rel=`
  let links = `${start}0${end}"first"`
  if (page > 0) links += `, ${start}${Math.min(page - 1, last)}${end}"prev"`
  if (page < last) links += `, ${start}${page + 1}${end}"next"`
  return `${links}, ${start}${last}${end}"last"`
}

/** Resets the connections of unfinished exports when the process exits, see resetIfCut(). @returns these connections */
export function resetOnExit(app: FastifyInstance): Set<Socket> {
  const unfinished = new Set<Socket>()
  const reset = () => {
    for (const socket of unfinished) socket.resetAndDestroy()
  }
  process.on('exit', reset)
  app.addHook('onClose', async () => process.off('exit', reset))
  return unfinished
}

/** Sends an export. @param name start of the file name */
export function sendExport(
  reply: FastifyReply,
  unfinished: Set<Socket>,
  name: string,
  { extension }: ExportFormat,
  request: ListRequest,
  response: ReadResponse,
): FastifyReply | Promise<FastifyReply> {
  const { body, meta } = response
  if (body === undefined) return sendResponse(reply, request, response)
  const { from, to } = request
  const file = [name, from && `from-${from}`, to && `to-${to}`].filter(Boolean).join('-')
  reply.headers({
    'x-total-count': meta.totalItems,
    'content-disposition': `attachment; filename="${file}.${extension}"`,
  })
  if (reply.request.method !== 'HEAD') resetIfCut(reply, unfinished, body)
  return sendResponse(reply, request, response)
}

/**
 * Over HTTP/1.0, the end of the connection is the end of the body. A reset shows that the body is cut: by
 * an error, when the client stalls, or when the process exits before the end.
 */
function resetIfCut({ request, raw }: FastifyReply, unfinished: Set<Socket>, body: unknown) {
  const { httpVersion, socket } = request.raw
  if (httpVersion !== '1.0' || !(body instanceof Readable)) return
  unfinished.add(socket)
  socket.once('close', () => unfinished.delete(socket))
  raw.once('timeout', () => socket.resetAndDestroy())
  body.once('error', () => socket.resetAndDestroy())
}
