import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ALLOWED_METHODS, WRONG_METHOD } from './other-methods.ts'
import { Refusal } from './problems.ts'
import { timesSent } from './times-sent.ts'
import { endConnection } from './unreadable.ts'

/**
 * Takes over what Node would answer by itself, without our body: a request without Host (which needs
 * `requireHostHeader: false`), an expectation that it does not know, and CONNECT.
 */
export const nodeAnswers = fp(async (app: FastifyInstance) => {
  app.addHook('onRequest', async (request) => {
    const { httpVersion } = request.raw
    // RFC 9112, 3.2: one Host, neither none nor two, since HTTP/1.1.
    if (httpVersion !== '1.0' && timesSent(request, 'host') !== 1) {
      throw new Refusal('malformed_request', 'The request must have one Host header.')
    }
  })
  // RFC 9110, 10.1.1: an expectation may be ignored.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })
  app.server.on('connect', (_request, socket) => {
    socket.on('error', () => {})
    endConnection(app.log, socket, 'method_not_allowed', WRONG_METHOD, [
      `Allow: ${ALLOWED_METHODS}`,
    ])
  })
})
