import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { Negotiator } from '@fastify/accept-negotiator'
import type { FastifyReply, FastifyRequest } from 'fastify'

type SendFile = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

const encodings = new Negotiator({ supportedValues: ['br', 'gzip', 'identity'] })

/** Serves a file from memory: a request needs no file descriptor. The first one compresses it. */
export function memoryFile(type: string, read: () => string | Buffer): SendFile {
  let prepared: ReturnType<typeof prepare> | undefined
  return async (request, reply) => {
    prepared ??= prepare(Buffer.from(read()))
    const { etag, contents } = await prepared
    reply.headers({ etag, 'cache-control': 'no-cache', vary: 'accept-encoding' })
    const known = request.headers['if-none-match']
    if (known === '*' || known?.includes(etag.slice(2))) return reply.code(304).send()
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
  const etag = `W/"${hash('sha256', identity, 'base64url').slice(0, 22)}"`
  return { etag, contents: { identity, br, gzip: gzipped } }
}
