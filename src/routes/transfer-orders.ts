import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import {
  JSON_TYPES,
  negotiate,
  representationOf,
  schemaFingerprint,
  sendResponse,
} from '../http/representation.ts'
import { tokenHash } from '../postgres/tokens.ts'
import { listTransferOrders } from '../queries/transfer-orders.ts'
import type { ConnectionParams } from '../schemas/list.ts'
import { AssetsTransferOrder, AssetsTransferOrderList } from '../schemas/transfer-order.ts'
import { admit, connectionRequest, type RouteOptions, schemaErrors } from './request.ts'

/** Route of the completed assets transfer orders of a connection (section 4.3). */
export async function transferOrders(app: FastifyInstance, options: RouteOptions): Promise<void> {
  const fingerprint = schemaFingerprint(AssetsTransferOrder, AssetsTransferOrderList)
  const representation = representationOf(fingerprint)
  const schema = {
    operationId: 'listAssetsTransferOrders',
    tags: ['Transfer orders'],
    summary: 'List assets transfer orders',
    description: 'Every transfer order that the end user completed, newest first, in one array.',
    querystring: Type.Object({}, { additionalProperties: false }),
    response: { 200: AssetsTransferOrderList },
  }
  const path = '/connections/:token/assets-transfer'
  app.get(path, { schema, attachValidation: true }, async (request, reply) => {
    await admit(options, reply, schemaErrors(request, {}))
    const mediaType = negotiate(request.headers.accept, JSON_TYPES)
    const hash = tokenHash((request.params as ConnectionParams).token)
    const orders = connectionRequest(request, hash, mediaType, representation, 0)
    const response = await listTransferOrders(options.db, orders)
    return sendResponse(reply, orders, response)
  })
}
