import { type Static, Type } from '@sinclair/typebox'
import { Decimal, Described, decimalRule, Nullable, nameOf, ShortText, Uuid } from './fields.ts'
import { type List, ListArray, NOW } from './list.ts'

/** A company with its two members. */
const Company = Type.Object(
  {
    name: Described(ShortText, 'Name of the company.'),
    cif: Described(ShortText, 'Tax identification code of the company.'),
  },
  {
    $id: 'Company',
    description: 'A company. Both members are always present.',
  },
)

/** An order to transfer assets that the user completed, with its fields in this order. */
function assetsTransferOrder(exact: boolean) {
  return Type.Object(
    {
      id: Described(Uuid, 'Identifier of the order.'),
      portfolio: Nullable(
        ShortText,
        'Portfolio of the assets, by its name or number in the order.',
      ),
      investment: Nullable(Uuid, 'Identifier of the investment to transfer.'),
      name: Nullable(ShortText, 'Name of the asset to transfer.'),
      isin: Nullable(ShortText, 'ISIN of the asset (ISO 6166).'),
      currency: Nullable(ShortText, 'Currency of `amount`, usually an ISO 4217 code.'),
      assetType: Nullable(
        ShortText,
        'Type of asset: STOCK, ETF, RIGHTS, FUND, PP, BOND or WARRANT. Others may follow.',
      ),
      titles: Nullable(
        Decimal(exact),
        'Number of shares or other units to transfer, with fractions.',
      ),
      amount: Nullable(Decimal(exact), 'Value to transfer, in `currency`.'),
      total: Nullable(Type.Boolean(), 'True for the whole position, false for a part of it.'),
      marketer: Nullable(Company, 'Company that markets the asset.'),
      managementCompany: Nullable(Company, 'Company that manages the asset.'),
    },
    {
      $id: nameOf('AssetsTransferOrder', exact),
      description:
        'An order to transfer assets that the user completed. Every field is present; null means ' +
        `unknown. ${decimalRule(exact)}`,
    },
  )
}

const item = assetsTransferOrder(false)
const exactItem = assetsTransferOrder(true)
export type AssetsTransferOrder = Static<typeof item>

const ALL =
  'All orders that the user completed for the connection, the latest first. Unfinished ' +
  'orders are not included.'

/** Every completed order of a connection, newest first. */
export const TransferOrders = {
  name: 'transfer-orders',
  table: 'assets_transfer_order',
  id: 'id',
  item,
  response: ListArray(item, ALL),
  exact: {
    item: exactItem,
    response: ListArray(exactItem, ALL),
  },
  dates: [],
  hidden: {
    completedAt: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      format: 'date-time',
      default: NOW,
      description: 'Time when the user completed the order. Null: not completed yet.',
    }),
  },
  revision: 1,
  hasChanges: false,
} as const satisfies List
