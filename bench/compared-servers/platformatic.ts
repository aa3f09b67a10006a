// @ts-expect-error: it comes without types.
import platformatic from '@platformatic/db-core'
import fastify from 'fastify'

/**
 * Platformatic DB generates the routes from the tables. The total is a header of the page.
 */
const app = fastify()
await app.register(platformatic, {
  connectionString: process.env.DATABASE_URL ?? '',
  poolSize: 10,
  graphql: false,
  events: false,
  limit: { default: 1000, max: 10_000 },
})
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
