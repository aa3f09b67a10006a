import type { FastifyRequest } from 'fastify'

/**
 * How often a request has a header. Of most, Node keeps the first and drops the others without a word.
 * @param name in lower case
 */
export function timesSent({ raw }: FastifyRequest, name: string): number {
  const { rawHeaders } = raw
  let times = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const header = rawHeaders[i] as string
    if (header.length === name.length && header.toLowerCase() === name) times += 1
  }
  return times
}
