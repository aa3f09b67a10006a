/** Fastify with the service's own client of PostgreSQL, statements and writer of rows. */
import Fastify from 'fastify'
import { type FloorRequest, respond } from '../servers/floor.ts'

const app = Fastify({ logger: false })

for (const list of ['portfolios/transactions', 'assets-transfer'] as const) {
  app.get<{ Params: { connection: string }; Querystring: Record<string, string> }>(
    `/api/v1/queries/connections/:connection/${list}`,
    async ({ params, query, headers }, reply) => {
      const asked: FloorRequest = {
        list,
        connection: params.connection,
        query: new URLSearchParams(query),
        authorization: headers.authorization,
        ifNoneMatch: headers['if-none-match'],
      }
      const { status, headers: found, body, end } = await respond(asked)
      reply.raw.once('close', end)
      return reply
        .code(status)
        .headers(found)
        .send(status === 304 ? undefined : body)
    },
  )
}

await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
