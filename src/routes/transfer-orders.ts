import { ARRAY_FORMATS, arrayBody } from '../http/list-body.ts'
import { completedOrders } from '../queries/transfer-orders.ts'
import { ConnectionParams, NoQuery, RequestHeaders } from '../schemas/request.ts'
import { arrayResponses } from '../schemas/response.ts'
import { TransferOrders } from '../schemas/transfer-order.ts'
import { list } from './list.ts'

/** Section 4.3: every completed order, in one array. */
export const transferOrders = list(TransferOrders, completedOrders(TransferOrders), {
  url: '/connections/:token/assets-transfer',
  schema: () => ({
    operationId: 'listAssetsTransferOrders',
    tags: ['Transfer orders'],
    summary: 'List assets transfer orders',
    description:
      'Every transfer order that the end user completed, newest first, in one array. ' +
      'The guide explains [exact decimals](#exact-decimals) and [ETags](#conditional-requests-etag).',
    params: ConnectionParams,
    querystring: NoQuery,
    headers: RequestHeaders,
    response: arrayResponses(TransferOrders),
  }),
  rules: () => ({}),
  formats: () => ARRAY_FORMATS,
  writeBody: arrayBody,
})
