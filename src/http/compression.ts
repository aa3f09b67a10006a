import { constants, type ZlibOptions, type ZstdOptions } from 'node:zlib'
import compress from '@fastify/compress'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

/**
 * Compresses answers for clients that take it, the cheapest way first. The levels were measured on a
 * full page (docs/performance.md): the next ones cost several times the processor for a few per cent.
 * What is larger than a page of a daily sync is compressed by Node's thread pool, piece by piece, so
 * that the event loop goes on serving others.
 */
export const compression = fp(async (app: FastifyInstance) => {
  await app.register(compress, {
    globalDecompression: false,
    encodings: ['zstd', 'br', 'gzip'],
    threshold: SMALL,
    syncThreshold: AT_ONCE,
    zlibOptions: levels,
    brotliOptions: { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } },
    customTypes: /json/,
  })
})

/** The plugin hands one object to gzip, which reads `level`, and to zstd, which reads `params`. */
const levels: ZlibOptions & ZstdOptions = {
  level: 1,
  params: { [constants.ZSTD_c_compressionLevel]: 1 },
}
/** In bytes: less than fits in one packet gains nothing. */
const SMALL = 1_400
/** In bytes: up to this a call costs less than a stream. */
const AT_ONCE = 16_384
