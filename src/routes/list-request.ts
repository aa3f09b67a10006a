import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Database } from '../database/database.ts'
import type { Reply } from '../queries/reply.ts'
import type { ListFacts } from '../queries/transaction-list.ts'
import { DEFAULT_LIMIT, DEFAULT_PAGE, type ListQuery } from '../schemas/list-query.ts'
import {
  connectionFacts,
  holdingFor,
  type RouteOptions,
  refuseFaults,
} from './connection-request.ts'
import { readOfKnownCaller } from './known-caller.ts'
import { listFaults } from './list-faults.ts'
import { pageLinks } from './page-links.ts'
import { sendReply } from './send-reply.ts'

/**
 * Handles a request for one of the two lists: its parameters, one read, the answer with its links.
 * @param form names the form of the answer, see routes/validators.ts
 */
export function listHandler(
  options: RouteOptions,
  read: (db: Database, facts: ListFacts) => Promise<Reply>,
  form: string,
) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const query = request.query as ListQuery
    const found = request.validationError?.validation ?? []
    await refuseFaults(options, reply, listFaults(query, found, options.maximumLimit))
    const { from, to, limit = DEFAULT_LIMIT, page = DEFAULT_PAGE } = query
    const holding = holdingFor(options.db, reply, Number(limit))
    const { facts, validators } = connectionFacts(request, form, holding)
    const list = { ...facts, from, to, limit: Number(limit), page: Number(page) }
    const answer = await readOfKnownCaller(options, reply, read(options.db, list))
    if (answer.body) reply.header('link', pageLinks(list, answer.totalItems))
    return sendReply(reply, validators, answer)
  }
}
