import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { formOf, sendReply } from '../http/conditional-requests.ts'
import { readAssetsTransferOrders } from '../queries/transfer-orders.ts'
import { AssetsTransferOrder, AssetsTransferOrderList } from '../schemas/transfer-order.ts'
import {
  connectionFacts,
  holdingFor,
  type RouteOptions,
  readOfKnownCaller,
  refuseFaults,
} from './connection-request.ts'
import { connectionSchema } from './operation.ts'
import { formFaults } from './paging.ts'

/** GET the completed assets transfer orders of a connection (section 4.3). */
export async function assetsTransferOrders(
  app: FastifyInstance,
  options: RouteOptions,
): Promise<void> {
  const form = formOf(AssetsTransferOrder, AssetsTransferOrderList)
  app.get(
    '/connections/:token/assets-transfer',
    {
      schema: connectionSchema({
        operationId: 'listAssetsTransferOrders',
        tag: 'Transfer orders',
        summary: 'List assets transfer orders',
        description:
          'Every transfer order that the end user completed, newest first, in one array.',
        querystring: Type.Object({}, { additionalProperties: false }),
        answer: AssetsTransferOrderList,
      }),
      attachValidation: true,
    },
    async (request, reply) => {
      const found = request.validationError?.validation ?? []
      await refuseFaults(options, reply, formFaults(found, {}))
      // Their number is not known before; a connection has few of them.
      const holding = holdingFor(options.db, reply, 0)
      const { facts, validators } = connectionFacts(request, form, holding)
      const reading = readAssetsTransferOrders(options.db, facts)
      return sendReply(reply, validators, await readOfKnownCaller(options, reply, reading))
    },
  )
}
