import { constants, type ZlibOptions, type ZstdOptions } from 'node:zlib'
import compress from '@fastify/compress'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

/**
 * Compresses responses with the cheapest encoding that the client accepts. Higher levels cost several
 * times the CPU for a few per cent (docs/performance.md). The thread pool of Node.js compresses large
 * responses in chunks, so the event loop stays free.
 */
export const compression = fp(async (app: FastifyInstance) => {
  await app.register(compress, {
    globalDecompression: false,
    encodings: ['zstd', 'br', 'gzip'],
    threshold: MIN_BYTES,
    syncThreshold: MAX_SYNC_BYTES,
    zlibOptions: levels,
    brotliOptions: { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } },
    customTypes: /json/,
  })
})

/** The plugin passes one object to gzip, which reads `level`, and to zstd, which reads `params`. */
const levels: ZlibOptions & ZstdOptions = {
  level: 1,
  params: { [constants.ZSTD_c_compressionLevel]: 1 },
}
/** A smaller response fits in one packet anyway. */
const MIN_BYTES = 1_400
/** Up to this size, a synchronous call costs less than a stream. */
const MAX_SYNC_BYTES = 16_384
