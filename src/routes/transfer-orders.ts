import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { representationOf, schemaFingerprint, sendResponse } from '../http/conditional-requests.ts'
import { listTransferOrders } from '../queries/transfer-orders.ts'
import { AssetsTransferOrder, AssetsTransferOrderList } from '../schemas/transfer-order.ts'
import {
  charge,
  connectionRequest,
  type RouteOptions,
  rejectParameters,
  schemaErrors,
} from './connection-request.ts'
import { connectionSchema } from './operation.ts'

/** Route of the completed assets transfer orders of a connection (section 4.3). */
export async function transferOrders(app: FastifyInstance, options: RouteOptions): Promise<void> {
  const fingerprint = schemaFingerprint(AssetsTransferOrder, AssetsTransferOrderList)
  const representation = representationOf(fingerprint)
  const schema = connectionSchema({
    operationId: 'listAssetsTransferOrders',
    tag: 'Transfer orders',
    summary: 'List assets transfer orders',
    description: 'Every transfer order that the end user completed, newest first, in one array.',
    querystring: Type.Object({}, { additionalProperties: false }),
    response: AssetsTransferOrderList,
  })
  const path = '/connections/:token/assets-transfer'
  app.get(path, { schema, attachValidation: true }, async (_request, reply) => {
    await rejectParameters(options, reply, schemaErrors(reply.request, {}))
    // The number of orders is unknown before the read, but small.
    const request = connectionRequest(options, reply, representation, 0)
    const response = await charge(options, reply, listTransferOrders(options.db, request))
    return sendResponse(reply, request, response)
  })
}
