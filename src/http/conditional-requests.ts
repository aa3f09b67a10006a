import { hash } from 'node:crypto'
import type { TSchema } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Reply } from '../queries/read-response.ts'

/** The entity tags of one request: which the client sent, and which the answer gets. */
export interface Validators {
  /** The versions of the data that the client has of this very answer. */
  knownVersions: string[]
  etag(version: string): string
}

/** Names the form of an answer: it changes when a field of it is added, renamed or described anew. */
export function formOf(...schemas: TSchema[]): string {
  return hash('sha256', JSON.stringify(schemas), 'base64url').slice(0, 8)
}

/**
 * A tag is `W/"<version>-<digest>"`. The version is the database's; the digest stands for the address
 * asked for and the form of the answer, so that a tag is never taken for that of another answer, or of
 * a release that answers with other fields.
 */
export function validatorsOf(request: FastifyRequest, form: string): Validators {
  const digest = hash('sha256', `${form}\n${request.url}`, 'base64url').slice(0, 22)
  return {
    knownVersions: knownVersions(request.headers['if-none-match'], digest),
    etag: (version) => `W/"${version}-${digest}"`,
  }
}

const TAG = /"([0-9]{1,19}\.[0-9]{1,19})-([A-Za-z0-9_-]{22})"/g
const MOST_TAGS = 16

function knownVersions(header: string | undefined, digest: string): string[] {
  if (header === undefined) return []
  if (header.trim() === '*') return ['*']
  const tags = [...header.matchAll(TAG)].filter((tag) => tag[2] === digest)
  return tags.map((tag) => String(tag[1])).slice(0, MOST_TAGS)
}

/** An HTTP date; the version ends in the microseconds since 1970 of the last change. */
function lastModified(version: string): string {
  const microseconds = Number(version.slice(version.indexOf('.') + 1))
  return new Date(microseconds / 1000).toUTCString()
}

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
