import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { sendResponse } from '../http/conditional-requests.ts'
import { CSV, EXACT_NDJSON, NDJSON } from '../http/media-types.ts'
import type { ListRequest } from '../queries/list-page.ts'
import type { ReadResponse } from '../queries/read-response.ts'

/** Format of the rows of an export, and the end of its file name. */
export interface ExportFormat {
  rows: 'json' | 'exactJson' | 'csv'
  extension: string
}

/** Exports by media type. The other media types are those of pages. */
export const EXPORT_FORMATS: Record<string, ExportFormat | undefined> = {
  [NDJSON]: { rows: 'json', extension: 'ndjson' },
  [EXACT_NDJSON]: { rows: 'exactJson', extension: 'ndjson' },
  [CSV]: { rows: 'csv', extension: 'csv' },
}

/** Connections of exports over HTTP/1.0 that have not ended. */
export type UnfinishedExports = Set<Socket>

/** Resets the connections of unfinished exports when the process exits, see resetIfCut(). */
export function resetOnExit(app: FastifyInstance): UnfinishedExports {
  const unfinished: UnfinishedExports = new Set()
  const reset = () => {
    for (const socket of unfinished) socket.resetAndDestroy()
  }
  process.on('exit', reset)
  app.addHook('onClose', async () => process.off('exit', reset))
  return unfinished
}

/**
 * Sends an export.
 * @param name start of the file name
 */
export function sendExport(
  reply: FastifyReply,
  unfinished: UnfinishedExports,
  name: string,
  { extension }: ExportFormat,
  request: ListRequest,
  response: ReadResponse,
): FastifyReply {
  const { body, meta } = response
  if (body === undefined) return sendResponse(reply, request, response)
  const { from, to } = request
  const file = [name, from && `from-${from}`, to && `to-${to}`].filter(Boolean).join('-')
  reply.headers({
    'x-total-count': meta.totalItems,
    'content-disposition': `attachment; filename="${file}.${extension}"`,
  })
  if (reply.request.method !== 'HEAD') {
    resetIfCut(reply, unfinished, body)
    return sendResponse(reply, request, response)
  }
  ;(body as Readable).destroy()
  // Fastify would read all rows.
  return sendResponse(reply, request, { ...response, body: Readable.from([]) })
}

/**
 * Over HTTP/1.0, the end of the connection is the end of the body. A reset shows that the body is cut: by
 * an error, after CLIENT_STALL_MS, or when the process exits after SHUTDOWN_GRACE_MS.
 */
function resetIfCut({ request, raw }: FastifyReply, unfinished: UnfinishedExports, body: unknown) {
  const { httpVersion, socket } = request.raw
  if (httpVersion !== '1.0' || !(body instanceof Readable)) return
  unfinished.add(socket)
  socket.once('close', () => unfinished.delete(socket))
  raw.once('timeout', () => socket.resetAndDestroy())
  body.once('error', () => socket.resetAndDestroy())
}
