import type { FastifyReply } from 'fastify'
import type { Reply } from '../queries/reply.ts'
import { lastModified, type Validators } from './validators.ts'

/**
 * Sends what a query found, with the headers of contract 24: 200 with the JSON, or 304 where the
 * client has it already.
 */
export function sendReply(reply: FastifyReply, validators: Validators, found: Reply): FastifyReply {
  reply.request.items = found.items
  reply.headers({
    etag: validators.etag(found.version),
    'last-modified': lastModified(found.version),
    'cache-control': 'private, no-cache',
    vary: 'accept-encoding',
  })
  if (found.body === undefined) return reply.code(304).send()
  return reply.type('application/json; charset=utf-8').send(found.body)
}
