import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { Negotiator } from '@fastify/accept-negotiator'
import compress from '@fastify/compress'
import type { TSchema } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import type { ConnectionRequest, ReadResponse } from '../queries/read-response.ts'

/** OData's parameter for decimals as strings. */
const EXACT_PARAMETER = 'IEEE754Compatible=true'

export const JSON_TYPE = 'application/json'
export const EXACT_JSON = `${JSON_TYPE};${EXACT_PARAMETER}` as const
export const JSON_TYPES = [JSON_TYPE, EXACT_JSON] as const

export const NDJSON = 'application/x-ndjson'
export const EXACT_NDJSON = `${NDJSON};${EXACT_PARAMETER}` as const
export const CSV = 'text/csv'
export const LIST_TYPES = [...JSON_TYPES, NDJSON, EXACT_NDJSON, CSV] as const

export const isExact = (mediaType: string): boolean => mediaType.endsWith(EXACT_PARAMETER)

export type MediaTypes<Type> = readonly [byDefault: Type, ...others: Type[]]

/**
 * Selects the media type of a response (RFC 9110, section 12.5.1). Only a media range without wildcards
 * selects another type than the default. A header that accepts none of the types has no effect.
 */
export function negotiate<Type extends string>(
  accept: string | undefined,
  offered: MediaTypes<Type>,
): Type {
  const [byDefault] = offered
  if (accept === undefined || !OTHER_TYPE.test(accept)) return byDefault
  const ranges = accept.toLowerCase().match(RANGE) ?? []
  const choices = ranges.flatMap((range) => choiceOf(range, offered))
  // At the same weight and precision, the first range wins.
  choices.sort((a, b) => b.weight - a.weight || b.precision - a.precision)
  return choices[0]?.type ?? byDefault
}

/** Matches each header that can select another type than the default. Most match nothing. */
const OTHER_TYPE = /ieee754compatible|ndjson|csv/i
const RANGE = /(?:[^,"]|"(?:\\.|[^"\\])*"?)+/g
const WEIGHT = /;[ \t]*q=([^; \t]*)/
const EXACT = /;[ \t]*ieee754compatible=(?:true|"true")[ \t]*(?:;|$)/

/** Finds the type that a media range in lower case accepts: none for an unknown type or a weight of 0. */
function choiceOf<Type extends string>(range: string, offered: MediaTypes<Type>) {
  const weight = Number(WEIGHT.exec(range)?.[1] ?? 1)
  if (!(weight > 0 && weight <= 1)) return []
  const name = range.replace(/;.*/, '').trim()
  if (name === '*/*') return [{ type: offered[0], weight, precision: 0 }]
  if (name === 'application/*') return [{ type: offered[0], weight, precision: 1 }]
  const exact = EXACT.test(range) && offered.find((type) => type === `${name};${EXACT_PARAMETER}`)
  if (exact) return [{ type: exact, weight, precision: 3 }]
  const named = offered.find((type) => type === name)
  return named === undefined ? [] : [{ type: named, weight, precision: 2 }]
}

/** Digest of response schemas. It changes with every field, name and description. */
export function schemaFingerprint(...schemas: TSchema[]): string {
  return hash('sha256', JSON.stringify(schemas), 'base64url').slice(0, 8)
}

/**
 * Digest of a representation: the route's fields and the query. An ETag is `W/"<data
 * version>-<digest>"`, so it matches no other route, query or release (contract 24). The digest does
 * not contain the connection token: otherwise, an ETag would allow offline guesses.
 */
export function representationOf(fingerprint: string, ...query: unknown[]): string {
  return hash('sha256', `${fingerprint} ${query.join(' ')}`, 'base64url').slice(0, 22)
}

const TAG = /"([0-9]{1,19}\.[0-9]{1,19})-([A-Za-z0-9_-]{22})"/

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
  { representation, mediaType }: ConnectionRequest,
  { meta, body }: ReadResponse,
): FastifyReply | Promise<FastifyReply> {
  const { context } = reply.request
  context.items = meta.items
  context.mediaType = mediaType
  context.writingAt = performance.now()
  reply.headers({
    etag: `W/"${meta.version}-${representation}"`,
    'data-version': meta.version,
    'last-modified': lastModified(meta.version),
    'cache-control': 'private, no-cache',
    // The default needs no `accept`: a cache revalidates each response, and the tags differ (contract 25).
    vary: mediaType === JSON_TYPE ? 'accept-encoding' : 'accept, accept-encoding',
  })
  if (meta.refreshed !== null) {
    const time = new Date(Number(meta.refreshed) * 1000).toISOString()
    reply.header('data-refreshed', time.replace('.000', ''))
  }
  if (body === undefined) return reply.code(304).send()
  reply.type(`${mediaType}; charset=utf-8`)
  if (reply.request.method === 'HEAD' && body instanceof Readable) {
    // The client has the whole response before Fastify has read the body, and may send its next request.
    body.destroy()
    return reply.send(Readable.from([]))
  }
  const isLarge = Buffer.isBuffer(body) && body.length > MAX_SYNC_BYTES
  return isLarge ? sendCompressed(reply, body) : reply.send(body)
}

/** HTTP date of the last change: the version ends in its microseconds since 1970. */
function lastModified(version: string): string {
  const microseconds = Number(version.slice(version.indexOf('.') + 1))
  return new Date(microseconds / 1000).toUTCString()
}

/**
 * Compresses responses at the lowest levels. Higher ones cost several times the CPU for a few per cent
 * (docs/performance.md). The thread pool of Node.js compresses large responses.
 */
export const compression = fp(async (app: FastifyInstance) => {
  await app.register(compress, {
    globalDecompression: false,
    encodings: [...ENCODINGS],
    threshold: MIN_BYTES,
    syncThreshold: MAX_SYNC_BYTES,
    zlibOptions: levels,
    brotliOptions: brotli,
    // The plugin does not know NDJSON.
    customTypes: /json|csv/,
  })
})

/** Sends a large buffer, compressed in one call. The stream of @fastify/compress costs more CPU than the compression. */
async function sendCompressed(reply: FastifyReply, body: Buffer): Promise<FastifyReply> {
  const accepted = reply.request.headers['accept-encoding'] ?? 'identity'
  const encoding = encodings.negotiate(accepted.toLowerCase())
  if (encoding === null || encoding === 'identity') return reply.send(body)
  const compressed = await compressors[encoding](body)
  return reply.header('content-encoding', encoding).send(compressed)
}

const ENCODINGS = ['zstd', 'br', 'gzip'] as const
const encodings = new Negotiator({ supportedValues: [...ENCODINGS, 'identity'] })

/** The plugin passes one object to gzip, which reads `level`, and to zstd, which reads `params`. */
const levels: zlib.ZlibOptions & zlib.ZstdOptions = {
  level: 1,
  params: { [zlib.constants.ZSTD_c_compressionLevel]: 1 },
}
const brotli: zlib.BrotliOptions = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }

const compressors = {
  zstd: (body: Buffer) => promisify(zlib.zstdCompress)(body, levels),
  br: (body: Buffer) => promisify(zlib.brotliCompress)(body, brotli),
  gzip: (body: Buffer) => promisify(zlib.gzip)(body, levels),
}

/** A smaller response fits in one packet anyway. */
const MIN_BYTES = 1_400
/** Up to this size, a synchronous call costs less than a call in the thread pool. */
const MAX_SYNC_BYTES = 16_384
