import { hash } from 'node:crypto'
import type { TSchema } from '@sinclair/typebox'
import type { FastifyReply } from 'fastify'
import type { ConnectionRequest, ReadResponse } from '../queries/read-response.ts'
import { JSON_TYPE } from './media-types.ts'

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
): FastifyReply {
  reply.request.context.items = meta.items
  reply.headers({
    etag: `W/"${meta.version}-${representation}"`,
    'data-version': meta.version,
    'last-modified': lastModified(meta.version),
    'cache-control': 'private, no-cache',
    // The default needs no `accept`: a cache revalidates each response, and the tags differ (contract 25).
    vary: mediaType === JSON_TYPE ? 'accept-encoding' : 'accept, accept-encoding',
  })
  if (body === undefined) return reply.code(304).send()
  return reply.type(`${mediaType}; charset=utf-8`).send(body)
}

/** HTTP date of the last change: the version ends in its microseconds since 1970. */
function lastModified(version: string): string {
  const microseconds = Number(version.slice(version.indexOf('.') + 1))
  return new Date(microseconds / 1000).toUTCString()
}
