import { instruments } from './instruments.ts'
import { idOf } from './random.ts'
import type { AccountRow, ConnectionRows, OrderRow, PortfolioRow } from './rows.ts'

const [renewables, , , , software, , , , electric, fund, etf] = instruments.map(({ id }) => id)
const portfolioId = idOf('small portfolio')
const accountId = idOf('small account')

const portfolio: PortfolioRow[] = [
  {
    transactionId: idOf('small buy'),
    portfolioId,
    type: 'BUY',
    titles: '120',
    price: '18.42',
    amount: '2210.40',
    commission: '4.95',
    taxes: '0.00',
    currency: 'EUR',
    description: 'Compra Hispania Renovables',
    operationDateDay: '2024-03-04',
    valueDateDay: '2024-03-06',
    operationDateHour: '09:31:07',
    originalOperationDateTz: 'Europe/Madrid',
    investment: renewables as string,
  },
  {
    transactionId: idOf('small foreign buy'),
    portfolioId,
    type: 'BUY',
    titles: '7.5',
    price: '98.60',
    exchangeRate: '1.0846',
    amount: '739.50',
    amountBaseCurrency: '681.817259819288216854139775',
    commission: '1.00',
    currency: 'USD',
    localCurrency: 'EUR',
    description: 'Great Lakes Software Inc. "Class A"',
    operationDateDay: '2024-05-13',
    originalOperationDateDay: '2024-05-13',
    valueDateDay: '2024-05-15',
    operationDateHour: '21:04:55',
    originalOperationDateHour: '15:04:55',
    originalOperationDateTz: 'America/New_York',
    investment: software as string,
  },
  {
    transactionId: idOf('small dividend'),
    portfolioId,
    type: 'DIVIDENDS',
    titles: '120',
    price: '0.31',
    amount: '37.20',
    taxes: '7.07',
    currency: 'EUR',
    description: 'Dividendo a cuenta · 0,31 € por acción',
    operationDateDay: '2024-07-01',
    valueDateDay: '2024-07-01',
    investment: renewables as string,
    retentionDetail: { retentionFrom: '0', retentionTo: '7.07' },
  },
  splitSide('SPLIT_SELL', '120', 'small split in'),
  splitSide('SPLIT_BUY', '240', 'small split out'),
  {
    transactionId: idOf('small fraction'),
    portfolioId,
    type: 'BUY',
    titles: '0.000000000000000000000000000001',
    price: '61234.5',
    amount: '0.0000000000000000000000000612345',
    currency: 'EUR',
    description: 'A fraction with thirty decimals',
    operationDateDay: '2024-11-11',
    operationDateHour: '11:11:11',
    investment: etf as string,
  },
  {
    transactionId: idOf('small unknown'),
    portfolioId,
    type: 'UNKNOWN',
    description: '株式併合のお知らせ 🗾\n(見分けられない取引)',
    currency: 'JPY',
    valueDateDay: '2025-01-20',
    investment: electric as string,
  },
  {
    transactionId: idOf('small sell'),
    portfolioId,
    type: 'SELL',
    titles: '40',
    price: '10.155',
    amount: '406.20',
    commission: '4.95',
    taxes: '0.00',
    currency: 'EUR',
    description: 'Venta Hispania Renovables',
    operationDateDay: '2025-02-14',
    valueDateDay: '2025-02-18',
    operationDateHour: '16:59:59',
    originalOperationDateTz: 'Europe/Madrid',
    investment: renewables as string,
  },
]

function splitSide(type: 'SPLIT_BUY' | 'SPLIT_SELL', titles: string, other: string): PortfolioRow {
  return {
    transactionId: idOf(type === 'SPLIT_BUY' ? 'small split in' : 'small split out'),
    portfolioId,
    type,
    titles,
    currency: 'EUR',
    description: 'Split 2:1 Hispania Renovables',
    operationDateDay: '2024-09-16',
    investment: renewables as string,
    relatedTransaction: idOf(other),
  }
}

function cash(type: AccountRow['type'], amount: string, day: string, text: string): AccountRow {
  const base = { accountId, operationDateDay: day, valueDateDay: day, currency: 'EUR' }
  return { ...base, movementId: idOf(`small cash ${day} ${type}`), type, amount, description: text }
}

const account: AccountRow[] = [
  cash('DEPOSIT', '3500.00', '2024-03-01', 'Transferencia recibida'),
  cash('FEES', '-4.95', '2024-03-04', 'Comisión de compraventa'),
  {
    ...cash('FOREX_WITHDRAWAL', '-681.82', '2024-05-13', 'EUR → USD'),
    exchangeRate: '1.0846',
    localCurrency: 'USD',
  },
  {
    ...cash('DIVIDENDS', '30.13', '2024-07-01', 'Dividendo Hispania Renovables'),
    taxes: '7.07',
    investment: renewables as string,
  },
  cash('INTEREST', '1.284617', '2024-12-31', 'Liquidación de intereses'),
  cash('UNKNOWN', '-0.01', '2025-01-20', 'Ajuste \\ redondeo'),
]

const orders: OrderRow[] = [
  {
    id: idOf('small order of the fund'),
    portfolio: 'ES-4471-0093',
    investment: fund as string,
    name: 'Fondo Demo Renta Mixta FI',
    isin: String(instruments[9]?.isin),
    currency: 'EUR',
    assetType: 'FUND',
    titles: '104.339172',
    amount: '1120.60',
    total: true,
    marketer: { name: 'Banco del Ebro, S.A.', cif: 'A00000000' },
    managementCompany: { name: 'Gestora Demo, S.G.I.I.C.', cif: 'A00000018' },
    completedAt: '2025-03-03T10:15:00Z',
  },
  {
    id: idOf('small order of the shares'),
    portfolio: 'ES-4471-0093',
    investment: renewables as string,
    name: 'Hispania Renovables',
    isin: String(instruments[0]?.isin),
    currency: 'EUR',
    assetType: 'STOCK',
    titles: '200',
    amount: '2031.00',
    total: false,
    completedAt: '2025-03-10T17:42:30Z',
  },
  { id: idOf('small order begun'), name: 'Demo World Equity UCITS ETF', completedAt: null },
]

/** A dozen rows, each with an edge case; source of the examples in the documentation. */
export const smallPortfolio: ConnectionRows = { portfolio, account, orders }
