import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { Negotiator } from '@fastify/accept-negotiator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ENCODING_SUFFIX } from './compression.ts'

export type SendFile = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

const encodings = new Negotiator({ supportedValues: ['br', 'gzip', 'identity'] })

/** Serves a file from memory: a request needs no file descriptor. The first one compresses it. */
export function memoryFile(type: string, read: () => string | Buffer): SendFile {
  let prepared: ReturnType<typeof prepare> | undefined
  return async (request, reply) => {
    prepared ??= prepare(Buffer.from(read()))
    const { etag, tag, contents } = await prepared
    reply.headers({ etag, 'cache-control': 'no-cache', vary: 'accept-encoding' })
    const known = request.headers['if-none-match']
    if (known === '*' || (known && tag.test(known))) return reply.code(304).send()
    const accepted = encodings.negotiate(request.headers['accept-encoding'] ?? 'identity')
    const encoding = accepted === 'br' || accepted === 'gzip' ? accepted : 'identity'
    if (encoding !== 'identity') reply.header('content-encoding', encoding)
    return reply.type(type).send(contents[encoding])
  }
}

async function prepare(identity: Buffer) {
  const [br, gzipped] = await Promise.all([
    promisify(brotliCompress)(identity),
    promisify(gzip)(identity),
  ])
  // One tag for all encodings, so it is weak.
  const digest = hash('sha256', identity, 'base64url').slice(0, 22)
  const tag = new RegExp(`"${digest}${ENCODING_SUFFIX}"`)
  return { etag: `W/"${digest}"`, tag, contents: { identity, br, gzip: gzipped } }
}
