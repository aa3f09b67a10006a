import { TransferOrders } from '../schemas/transfer-order.ts'
import { list } from './list.ts'

/** GET /connections/:token/assets-transfer (section 4.3). */
export const transferOrders = list(TransferOrders)
