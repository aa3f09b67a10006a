import type { AssetsTransferOrder } from '../../../typescript/src/index.ts'
import { type Line, partOf } from '../answer.ts'
import { connection, offset } from '../arguments.ts'
import { description, shortText } from '../texts.ts'
import { type Answer, defineTool } from '../tool.ts'

/** Orders of an answer; fewer if they exceed its bytes. */
const MAX_ORDERS = 100

export function listTransferOrders(connections: readonly string[]) {
  return defineTool({
    name: 'list_transfer_orders',
    description:
      'Completed orders to transfer assets, with the names and ISINs of their investments.',
    input: { connection: connection(connections), offset },
    work: ({ offset: from = 0 }, copy): Answer => {
      // The copy has no order, and parts need one.
      const lines = [...copy.transferOrders()].map(lineOf)
      const keyOf = (line: Line) => Object.values(line).join('\t')
      lines.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
      return partOf(lines.slice(from, from + MAX_ORDERS), from, lines.length)
    },
  })
}

function lineOf(order: AssetsTransferOrder): Line {
  return {
    name: description(order.name),
    isin: shortText(order.isin),
    assetType: shortText(order.assetType),
    titles: order.titles ?? '',
    amount: order.amount ?? '',
    currency: shortText(order.currency),
    total: String(order.total ?? ''),
    marketer: description(order.marketer?.name ?? null),
    managementCompany: description(order.managementCompany?.name ?? null),
    portfolio: description(order.portfolio),
    investment: shortText(order.investment),
  }
}
