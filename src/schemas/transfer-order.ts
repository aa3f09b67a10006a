import { type Static, Type } from '@sinclair/typebox'
import {
  Currency,
  DECIMAL_RULE,
  Decimal,
  Described,
  Nullable,
  PART,
  Reference,
  ShortText,
  Uuid,
} from './fields.ts'
import type { ListDefinition } from './list.ts'

/** A company with its two members (section 2.7). */
export const Company = Type.Object(
  {
    name: Described(ShortText, {
      description: 'Name of the company.',
      examples: ['Banco Ejemplo, S.A.'],
    }),
    cif: Described(ShortText, {
      description: 'Tax identification code of the company.',
      examples: ['A00000000'],
    }),
  },
  {
    [PART]: 'Company',
    additionalProperties: false,
    description: 'A company. Both members are always present.',
  },
)

/** An order to transfer assets that the user completed (section 2.7), with its fields in this order. */
export const AssetsTransferOrder = Type.Object(
  {
    id: Described(Uuid, {
      description: 'Identifier of the order.',
      examples: ['d80f5b36-7a19-4ce2-b4f8-6e2c9d01a57b'],
    }),
    portfolio: Nullable(ShortText, {
      description: 'Portfolio that holds the assets, by the name or number in the order.',
      examples: ['ES-4471-0093'],
    }),
    investment: Nullable(Uuid, {
      description: 'Identifier of the investment to transfer.',
      examples: ['c1a9e0f2-6d3b-4b7e-9a51-70d2f8b3e645'],
    }),
    name: Nullable(ShortText, {
      description: 'Name of the asset to transfer.',
      examples: ['Fondo Ejemplo Renta Variable FI'],
    }),
    isin: Nullable(ShortText, {
      description: 'International securities identification number of the asset (ISO 6166).',
      examples: ['ES0100000001'],
    }),
    currency: Nullable(Currency, {
      description: 'Currency of `amount`, usually an ISO 4217 code. Null if the order names none.',
      examples: ['EUR'],
    }),
    assetType: Nullable(ShortText, {
      description:
        'Type of asset. The list is open: STOCK, ETF, RIGHTS, FUND, PP, BOND and WARRANT are ' +
        'known, and others may follow.',
      examples: ['FUND'],
    }),
    titles: Nullable(Decimal, {
      description: 'Number of shares or other units to transfer, with fractions.',
      examples: [104.3391],
    }),
    amount: Nullable(Decimal, {
      description: 'Value to transfer, in `currency`.',
      examples: [1846.2],
    }),
    total: Nullable(Type.Boolean(), {
      description: 'True for a transfer of the whole position, false for a part of it.',
      examples: [true],
    }),
    marketer: Nullable(Company, {
      description: 'Company that markets the asset, with both members, or null.',
      examples: [{ name: 'Banco Ejemplo, S.A.', cif: 'A00000000' }],
    }),
    managementCompany: Nullable(Company, {
      description: 'Company that manages the asset, with both members, or null.',
      examples: [{ name: 'Gestora Ejemplo, S.G.I.I.C.', cif: 'A00000018' }],
    }),
  },
  {
    $id: 'AssetsTransferOrder',
    additionalProperties: false,
    description:
      'An order to transfer assets that the user completed. Every field is present; null means ' +
      `unknown. ${DECIMAL_RULE}`,
  },
)
export type AssetsTransferOrder = Static<typeof AssetsTransferOrder>

/** Every completed order of a connection, newest first (section 4.3, contract 8 and 15). */
const AssetsTransferOrderList = Type.Array(Reference(AssetsTransferOrder), {
  $id: 'AssetsTransferOrderList',
  description:
    'All orders that the user completed for the connection, the latest first. Unfinished ' +
    'orders are not included.',
})

export const TransferOrders = {
  name: 'transfer-orders',
  path: '/connections/:token/assets-transfer',
  operationId: 'listAssetsTransferOrders',
  tag: 'Transfer orders',
  summary: 'List assets transfer orders',
  description: 'Every transfer order that the end user completed, newest first, in one array.',
  table: 'assets_transfer_order',
  id: 'id',
  item: AssetsTransferOrder,
  response: AssetsTransferOrderList,
  paged: false,
} as const satisfies ListDefinition
