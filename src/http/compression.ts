import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { Negotiator } from '@fastify/accept-negotiator'
import compress from '@fastify/compress'
import type { FastifyInstance, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'

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
export const MAX_SYNC_BYTES = 16_384

/**
 * End of an ETag, in a regular expression: a proxy that compresses appends its encoding. Apache and Caddy append `-gzip`,
 * Jetty `--gzip`.
 */
export const ENCODING_SUFFIX = '(?:(?:--?|;)(?:gzip|br|zstd|deflate))?'

/** Replaces `*`: clients that accept any encoding may know none but gzip, such as proxies that pass responses on. */
function withoutWildcard(accepted: string): string {
  const names = accepted.split(',').map((part) => part.split(';', 1)[0]?.trim().toLowerCase())
  const parts = accepted.split(',').filter((_, n) => names[n] !== '*' || !names.includes('gzip'))
  return parts.join().replace('*', 'gzip')
}

/** Compresses at the lowest levels: higher ones cost several times the CPU for a few per cent. */
export const compression = fp(async (app: FastifyInstance) => {
  app.addHook('onRequest', (request, _reply, next) => {
    const { headers } = request
    const accepted = headers['accept-encoding']
    if (typeof accepted === 'string' && accepted.includes('*'))
      headers['accept-encoding'] = withoutWildcard(accepted)
    next()
  })
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

/** Sends a large buffer, compressed in one call: the stream of @fastify/compress costs more CPU than the compression. */
export function sendLarge(reply: FastifyReply, body: Buffer): FastifyReply | Promise<FastifyReply> {
  const accepted = reply.request.headers['accept-encoding']
  if (accepted === undefined) return reply.send(body)
  const encoding = encodings.negotiate(accepted.toLowerCase())
  if (encoding === null || encoding === 'identity') return reply.send(body)
  return compressors[encoding](body).then((compressed) =>
    reply.header('content-encoding', encoding).send(compressed),
  )
}
