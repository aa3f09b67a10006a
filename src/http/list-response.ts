import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Body } from '../json/response-body.ts'
import type { FoundList } from '../queries/read.ts'
import { type Format, MEDIA_TYPES } from '../schemas/list.ts'
import { MAX_SYNC_BYTES, sendLarge } from './compression.ts'
import { entityTag } from './preconditions.ts'

interface ListResponse extends FoundList {
  format: Format
  /** See representationOf(). */
  representation: string
}

/** Sends 304, because the client has the response. */
export function sendNotModified(reply: FastifyReply, response: ListResponse): FastifyReply {
  startResponse(reply, response, 0)
  return reply.code(304).send()
}

/** Sends 200 with the body. */
export function sendList(
  reply: FastifyReply,
  response: ListResponse,
  body: Body,
): FastifyReply | Promise<FastifyReply> {
  const { lookup, rows, laterRows, format } = response
  startResponse(reply, response, laterRows ? lookup.totalItems : rows.count)
  reply.type(`${MEDIA_TYPES[format]}; charset=utf-8`)
  if (!Buffer.isBuffer(body)) return sendChunks(reply, body)
  return body.length > MAX_SYNC_BYTES ? sendLarge(reply, body) : reply.send(body)
}

/** Sets the headers of a 200: a client needs them to ask for a 304, and to show how old the data is. */
function startResponse(
  reply: FastifyReply,
  { lookup, format, representation }: ListResponse,
  items: number,
): void {
  const { version, refreshed } = lookup
  reply.request.recorder.startResponse(items, MEDIA_TYPES[format])
  // The version ends in the microseconds since 1970.
  const changedAt = new Date(Number(version.slice(version.indexOf('.') + 1)) / 1000)
  reply
    .header('etag', entityTag(version, representation))
    .header('data-version', version)
    .header('last-modified', changedAt.toUTCString())
    .header('cache-control', 'private, no-cache')
    .header('vary', 'accept, accept-encoding')
  if (refreshed === null) return
  const time = new Date(Number(refreshed) * 1000).toISOString()
  reply.header('data-refreshed', time.replace('.000', ''))
}

/** Sends chunks. A reset shows that a response is cut: over HTTP/1.0, a closed connection ends the body. */
function sendChunks(reply: FastifyReply, chunks: Exclude<Body, Buffer>): FastifyReply {
  const { raw, request } = reply
  const { socket } = request.raw
  // A compression stream may keep chunks of any total size.
  const isCompressed = request.headers['accept-encoding'] !== undefined
  const isSent = () => !isCompressed && stream.readableLength === 0 && raw.writableLength === 0
  // The client has the whole response to HEAD before the body could be made, and may send its next request.
  const body = request.method === 'HEAD' ? [] : chunks(isSent)
  const stream = Readable.from(body, { objectMode: false })
  const reset = () => socket.resetAndDestroy()
  stream.once('error', reset)
  raw.once('timeout', reset)
  // If the client closes its side, Node.js closes the other one, also in the middle of a body.
  const resetOnEnd = () => raw.writableEnded || reset()
  socket.prependOnceListener('end', resetOnEnd)
  raw.once('close', () => socket.off('end', resetOnEnd))
  return reply.send(stream)
}
