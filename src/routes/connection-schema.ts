import type { TObject, TSchema } from '@sinclair/typebox'
import type { FastifySchema } from 'fastify'
import { type Named, Reference } from '../schemas/component.ts'
import { ConnectionParams } from '../schemas/connection-params.ts'
import { Problem } from '../schemas/problem.ts'
import { RequestHeaders } from '../schemas/request-headers.ts'
import { ResponseHeaders } from '../schemas/response-headers.ts'

interface Operation {
  /** The name of the function in a generated client. */
  operationId: string
  summary: string
  description: string
  querystring: TObject
  answer: Named<TSchema>
}

type HeaderName = keyof typeof ResponseHeaders

/**
 * The schema of an endpoint of a connection: what is its own, and what all three have in common, which
 * is every status but 200 (section 7, contract 19).
 */
export function connectionSchema({ querystring, answer, ...about }: Operation): FastifySchema {
  return {
    ...about,
    params: ConnectionParams,
    querystring,
    headers: RequestHeaders,
    response: {
      200: {
        description: answer.description,
        headers: headers('ETag', 'Last-Modified', 'Cache-Control', 'Link'),
        content: { 'application/json': { schema: Reference(answer) } },
      },
      304: {
        description: 'The answer that the request names in If-None-Match is still good.',
        headers: headers('ETag', 'Last-Modified', 'Cache-Control'),
        type: 'null',
      },
      400: problem('The parameters cannot be used, or the request cannot be read.'),
      401: problem('The bearer token is missing, or not valid.', 'WWW-Authenticate'),
      404: problem('The calling app has no connection with this token.'),
      405: problem('Only GET and HEAD are answered here.', 'Allow'),
      429: problem('The app has used up its quota.', 'Retry-After'),
      500: problem('The service failed.'),
      503: problem('The service cannot answer now.', 'Retry-After'),
    },
  }
}

function headers(...names: HeaderName[]) {
  const all: HeaderName[] = ['X-Request-ID', 'X-Client-Trace-ID', ...names]
  return Object.fromEntries(all.map((name) => [name, ResponseHeaders[name]]))
}

function problem(description: string, ...names: HeaderName[]) {
  const content = { 'application/json': { schema: Reference(Problem) } }
  return { description, headers: headers(...names), content }
}
