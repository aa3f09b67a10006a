import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Body, ReadResponse } from '../queries/read.ts'
import { type Format, MEDIA_TYPES } from '../schemas/list.ts'
import { ENCODING_SUFFIX, MAX_SYNC_BYTES, sendLarge } from './compression.ts'

/** Formats by media range, in lower case. A range without a name selects the default. */
const RANGES = new Map<string, Format>([
  ['*/*', 'json'],
  ['application/*', 'json'],
  ...Object.entries(MEDIA_TYPES).map(
    ([format, type]) => [type.toLowerCase(), format as Format] as const,
  ),
])

/** Matches each header that can select another format than the default. Most match nothing. */
const OTHER_FORMAT = /ieee754compatible|ndjson|csv/i
const RANGE = /(?:[^,"]|"(?:\\.|[^"\\])*"?)+/g
const WEIGHT = /;[ \t]*q=([^; \t]*)/
const EXACT = /;[ \t]*ieee754compatible=(?:true|"true")[ \t]*(?:;|$)/

/** Selects the format of a response (RFC 9110, section 12.5.1). A header that accepts none has no effect. */
export function negotiate(accept: string | undefined, formats: readonly Format[]): Format {
  // Unlike the package negotiator, it gives no CSV to a browser that accepts `text/*`, and ignores `charset`.
  if (accept === undefined || !OTHER_FORMAT.test(accept)) return 'json'
  const choices = (accept.toLowerCase().match(RANGE) ?? []).flatMap((range) => {
    const weight = Number(WEIGHT.exec(range)?.[1] ?? 1)
    const name = range.replace(/;.*/, '').trim()
    const names = EXACT.test(range) ? [`${name};ieee754compatible=true`, name] : [name]
    const found = names.map((each) => RANGES.get(each)).filter((format) => format !== undefined)
    const format = found.find((each) => formats.includes(each))
    if (format === undefined || !(weight > 0 && weight <= 1)) return []
    const precision = Number(format.startsWith('exact')) - name.split('*').length
    return [{ format, weight, precision }]
  })
  // At the same weight and precision, the first range wins.
  choices.sort((a, b) => b.weight - a.weight || b.precision - a.precision)
  return choices[0]?.format ?? 'json'
}

/** Part of every ETag. A release that changes the bytes of a response increments it. */
export const RESPONSE_REVISION = 1

/** Names a list, format and query in an ETag. A digest of the connection token would allow offline guesses. */
export function representationOf(...parts: unknown[]): string {
  return hash('sha256', `${RESPONSE_REVISION} ${parts.join(' ')}`, 'base64url').slice(0, 22)
}

const TAG = new RegExp(`"([0-9]{1,19}\\.[0-9]{1,19})-([A-Za-z0-9_-]{22})${ENCODING_SUFFIX}"`)

/** Data versions in If-None-Match that belong to a representation; `*` for any. */
export function knownVersions(header: string | undefined, representation: string): string[] {
  if (header === undefined) return []
  if (header === '*') return ['*']
  // No tag of this service contains a comma.
  const tags = header.split(',').map((tag) => TAG.exec(tag) ?? [])
  return tags.flatMap(([, version, of]) => (version && of === representation ? version : []))
}

/** Sends 200 with the body, or 304 if the client has it, with the headers of contract 24. */
export function sendResponse(
  reply: FastifyReply,
  representation: string,
  format: Format,
  { lookup, items, body }: ReadResponse,
): FastifyReply | Promise<FastifyReply> {
  const { version, refreshed } = lookup
  reply.request.recorder.startResponse(items, MEDIA_TYPES[format])
  reply.headers({
    etag: `W/"${version}-${representation}"`,
    'data-version': version,
    // The version ends in the microseconds since 1970.
    'last-modified': new Date(Number(version.replace(/^.*\./, '')) / 1000).toUTCString(),
    'cache-control': 'private, no-cache',
    // The default needs no `accept`: a cache revalidates each response, and the tags differ (contract 25).
    vary: format === 'json' ? 'accept-encoding' : 'accept, accept-encoding',
  })
  if (refreshed !== null) {
    const time = new Date(Number(refreshed) * 1000).toISOString()
    reply.header('data-refreshed', time.replace('.000', ''))
  }
  if (body === undefined) return reply.code(304).send()
  reply.type(`${MEDIA_TYPES[format]}; charset=utf-8`)
  if (!Buffer.isBuffer(body)) return sendChunks(reply, body)
  return body.length > MAX_SYNC_BYTES ? sendLarge(reply, body) : reply.send(body)
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
