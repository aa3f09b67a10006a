import { type Security, security } from './instruments.ts'
import { idOf } from './random.ts'
import type { AccountRow, ConnectionRows, OrderRow, PortfolioRow } from './rows.ts'

/** Rows that the institution adds, replaces or cancels on a day. */
interface Change {
  day: string
  portfolio?: PortfolioRow[]
  account?: AccountRow[]
  /** Identifiers of cancelled rows. */
  cancelled?: string[]
}

/** A short history with known results: docs/sandbox.md. */
interface Story {
  portfolio: PortfolioRow[]
  account: AccountRow[]
  orders?: OrderRow[]
  /** In the order of their days. */
  changes?: Change[]
}

/** Returns the rows of a story as the institution states them on a day. */
export function storyOn(day: string, { portfolio, account, orders, changes }: Story) {
  const rows: ConnectionRows = { portfolio, account, orders: orders ?? [] }
  for (const change of changes?.filter((each) => each.day <= day) ?? []) {
    const cancelled = new Set(change.cancelled)
    rows.portfolio = [...rows.portfolio, ...(change.portfolio ?? [])]
    rows.account = [...rows.account, ...(change.account ?? [])]
    rows.portfolio = latest(rows.portfolio, (row) => row.transactionId, cancelled)
    rows.account = latest(rows.account, (row) => row.movementId, cancelled)
  }
  return rows
}

/** Returns the last of the rows with the same identifier, without the cancelled ones. */
function latest<Row>(rows: Row[], idOfRow: (row: Row) => string, cancelled: Set<string>): Row[] {
  const byId = new Map(rows.map((row) => [idOfRow(row), row]))
  return [...byId].flatMap(([id, row]) => (cancelled.has(id) ? [] : [row]))
}

/** `2024-03-25 09:30:00`, or without an hour. */
type When = string

function dayAndHour(when: When) {
  const [operationDateDay = '', operationDateHour = null] = when.split(' ')
  return { operationDateDay, operationDateHour }
}

/** Writers of the rows of one story. */
function writers(story: string) {
  const portfolio = (name: string) => idOf(`${story} portfolio ${name}`)
  const row = (
    type: PortfolioRow['type'],
    when: When,
    { id, name }: Security,
    titles: string,
    fields: Partial<PortfolioRow> = {},
  ): PortfolioRow => ({
    transactionId: idOf(`${story} ${type} ${when}`),
    portfolioId: portfolio('1'),
    type,
    ...dayAndHour(when),
    investment: id,
    titles,
    currency: 'EUR',
    description: `${type.replaceAll('_', ' ').toLowerCase()}: ${name}`,
    ...fields,
  })
  const cash = (
    type: AccountRow['type'],
    when: When,
    amount: string,
    fields: Partial<AccountRow> = {},
  ): AccountRow => ({
    movementId: idOf(`${story} cash ${type} ${when}`),
    accountId: idOf(`${story} account`),
    type,
    ...dayAndHour(when),
    amount,
    currency: 'EUR',
    ...fields,
  })
  return { portfolio, row, cash }
}

/** Price, amount and costs of a trade. */
const at = (price: string, amount: string, commission = '0.00') => ({ price, amount, commission })

/** Price, gross amount and tax of a dividend. Its account gets the difference. */
const gross = (price: string, amount: string, taxes: string) => ({ price, amount, taxes })

/** Cash of a dividend, without its tax. */
const netOf = ({ id }: Security, taxes: string) => ({ investment: id, taxes })

/** Links the rows of one event: the first two name each other, and all others name the first. */
function linked(...rows: [PortfolioRow, PortfolioRow, ...PortfolioRow[]]): PortfolioRow[] {
  const [first, second, ...others] = rows
  return [
    { ...first, relatedTransaction: second.transactionId },
    ...[second, ...others].map((row) => ({ ...row, relatedTransaction: first.transactionId })),
  ]
}

function split(): Story {
  const { row, cash } = writers('split')
  const workshops = security('Talleres Demo', 'ESDEMO00101')
  return {
    portfolio: [
      row('BUY', '2023-03-06 10:15:00', workshops, '100', at('12.00', '1200.00', '6.00')),
      row('DIVIDENDS', '2023-06-15 09:00:00', workshops, '100', gross('0.40', '40.00', '7.60')),
      ...linked(
        row('SPLIT_SELL', '2023-10-02 08:00:00', workshops, '100'),
        row('SPLIT_BUY', '2023-10-02 08:00:01', workshops, '300'),
      ),
      row('BUY', '2024-02-12 11:02:30', workshops, '60', at('4.50', '270.00', '3.00')),
      row('DIVIDENDS', '2024-06-14 09:00:00', workshops, '360', gross('0.15', '54.00', '10.26')),
      row('SELL', '2024-09-20 16:05:00', workshops, '330', at('5.20', '1716.00', '8.00')),
    ],
    account: [
      cash('DEPOSIT', '2023-03-01', '1500.00'),
      cash('DIVIDENDS', '2023-06-15 09:00:00', '32.40', netOf(workshops, '7.60')),
      cash('DIVIDENDS', '2024-06-14 09:00:00', '43.74', netOf(workshops, '10.26')),
    ],
  }
}

function merger(): Story {
  const { row, cash } = writers('merger')
  const shipyards = security('Astilleros Demo', 'ESDEMO00102')
  const shipping = security('Naviera Demo Unida', 'ESDEMO00103')
  return {
    portfolio: [
      row('BUY', '2022-05-10 10:00:00', shipyards, '90', at('20.00', '1800.00', '9.00')),
      row('BUY', '2022-11-08 12:30:00', shipyards, '60', at('22.00', '1320.00', '6.00')),
      row('DIVIDENDS', '2023-04-03 09:00:00', shipyards, '150', gross('0.60', '90.00', '17.10')),
      // Five old shares become three new ones and 10.00 of cash.
      ...linked(
        row('MERGER_SELL', '2024-07-01 08:00:00', shipyards, '150'),
        row('MERGER_BUY', '2024-07-01 08:00:01', shipping, '90', at('30.00', '2700.00')),
        row('COMPENSATION', '2024-07-01 08:00:02', shipyards, '0', { amount: '300.00' }),
      ),
      row('SELL', '2025-03-17 15:45:00', shipping, '60', at('33.50', '2010.00', '10.00')),
      row('DIVIDENDS', '2025-06-02 09:00:00', shipping, '30', gross('1.00', '30.00', '5.70')),
    ],
    account: [
      cash('DEPOSIT', '2022-05-02', '3200.00'),
      cash('DIVIDENDS', '2023-04-03 09:00:00', '72.90', netOf(shipyards, '17.10')),
      cash('DIVIDENDS', '2025-06-02 09:00:00', '24.30', netOf(shipping, '5.70')),
    ],
  }
}

function scrip(): Story {
  const { row, cash } = writers('scrip')
  const power = security('Eléctrica Demo', 'ESDEMO00104')
  const rights = security('Eléctrica Demo, derechos 2024', 'ESDEMO00105')
  return {
    portfolio: [
      row('BUY', '2023-02-01 09:40:00', power, '200', at('10.00', '2000.00', '5.00')),
      row('RIGHTS_ISSUE', '2024-06-03 08:00:00', rights, '200'),
      row('RIGHTS_EXCLUSION', '2024-06-10 12:00:00', rights, '20', at('0.26', '5.20', '0.20')),
      // 45 rights become a share.
      ...linked(
        row('RIGHTS_CONVERSION_SELL', '2024-06-18 08:00:00', rights, '180'),
        row('RIGHTS_CONVERSION_BUY', '2024-06-18 08:00:01', power, '4', at('0.00', '0.00')),
      ),
      row('DIVIDENDS', '2024-07-15 09:00:00', power, '204', gross('0.25', '51.00', '9.69')),
      row('SELL', '2025-05-20 10:20:00', power, '202', at('11.50', '2323.00', '6.00')),
    ],
    account: [
      cash('DEPOSIT', '2023-02-01', '2100.00'),
      cash('DIVIDENDS', '2024-07-15 09:00:00', '41.31', netOf(power, '9.69')),
    ],
  }
}

function isin(): Story {
  const { row, cash } = writers('isin')
  const before = security('Farmacéutica Demo', 'ESDEMO00106')
  const after = security('Farmacéutica Demo', 'ESDEMO00107')
  return {
    portfolio: [
      row('BUY', '2023-01-16 09:20:00', before, '80', at('25.00', '2000.00', '4.00')),
      row('DIVIDENDS', '2023-05-15 09:00:00', before, '80', gross('0.50', '40.00', '7.60')),
      // This institution states no hour for corporate events.
      ...linked(
        row('ISIN_CHANGE_SELL', '2024-03-25', before, '80'),
        row('ISIN_CHANGE_BUY', '2024-03-25', after, '80'),
      ),
      row('DIVIDENDS', '2024-05-13 09:00:00', after, '80', gross('0.55', '44.00', '8.36')),
      row('BUY', '2024-10-07 13:10:00', after, '20', at('28.00', '560.00', '2.00')),
      row('SELL', '2025-02-03 10:30:00', after, '90', at('31.00', '2790.00', '5.00')),
    ],
    account: [
      cash('DEPOSIT', '2023-01-09', '2600.00'),
      cash('DIVIDENDS', '2023-05-15 09:00:00', '32.40', netOf(before, '7.60')),
      cash('DIVIDENDS', '2024-05-13 09:00:00', '35.64', netOf(after, '8.36')),
    ],
  }
}

function late(): Story {
  const { row, cash } = writers('late')
  const cellars = security('Bodegas Demo', 'ESDEMO00108')
  const sale = row('SELL', '2025-11-17 15:30:00', cellars, '60', at('10.00', '600.00', '3.00'))
  return {
    portfolio: [
      row('BUY', '2024-04-08 11:00:00', cellars, '50', at('8.00', '400.00', '2.00')),
      row('BUY', '2025-03-10 12:00:00', cellars, '50', at('9.00', '450.00', '2.00')),
      row('DIVIDENDS', '2025-06-30 09:00:00', cellars, '100', gross('0.20', '20.00', '3.80')),
    ],
    account: [
      cash('DEPOSIT', '2024-04-02', '900.00'),
      cash('DIVIDENDS', '2025-06-30 09:00:00', '16.20', netOf(cellars, '3.80')),
    ],
    changes: [{ day: '2026-01-02', portfolio: [sale] }],
  }
}

function correction(): Story {
  const { row, cash } = writers('correction')
  const cement = security('Cementos Demo', 'ESDEMO00109')
  const sale = row('SELL', '2025-10-20 14:00:00', cement, '20', at('18.00', '360.00', '2.00'))
  return {
    portfolio: [
      row('BUY', '2024-05-06 10:00:00', cement, '40', at('15.00', '600.00', '3.00')),
      row('DIVIDENDS', '2025-05-12 09:00:00', cement, '40', gross('0.30', '12.00', '2.28')),
      sale,
    ],
    account: [
      cash('DEPOSIT', '2024-05-02', '700.00'),
      cash('DIVIDENDS', '2025-05-12 09:00:00', '9.72', netOf(cement, '2.28')),
    ],
    changes: [{ day: '2026-01-05', portfolio: [{ ...sale, ...at('18.40', '368.00', '2.00') }] }],
  }
}

function cancel(): Story {
  const { row, cash } = writers('cancel')
  const paper = security('Papelera Demo', 'ESDEMO00110')
  const sale = at('9.00', '90.00', '1.00')
  const twice = row('SELL', '2025-12-11 12:00:03', paper, '10', sale)
  const fee = cash('FEES', '2025-12-11 12:00:03', '-1.00')
  return {
    portfolio: [
      row('BUY', '2025-02-10 09:45:00', paper, '30', at('7.00', '210.00')),
      row('BUY', '2025-09-15 10:10:00', paper, '30', at('7.50', '225.00')),
      row('SELL', '2025-12-11 12:00:00', paper, '10', sale),
      twice,
    ],
    account: [
      cash('DEPOSIT', '2025-02-03', '500.00'),
      cash('FEES', '2025-12-11 12:00:00', '-1.00'),
      fee,
    ],
    changes: [{ day: '2026-01-06', cancelled: [twice.transactionId, fee.movementId] }],
  }
}

function unknown(): Story {
  const { row, cash } = writers('unknown')
  const mines = security('Minera Demo', 'ESDEMO00111')
  const movement = row('UNKNOWN', '2025-10-06 17:00:00', mines, '120')
  const credit = cash('UNKNOWN', '2025-07-07 09:00:00', '24.30')
  return {
    portfolio: [
      row('BUY', '2023-09-04 09:05:00', mines, '120', at('6.00', '720.00')),
      row('DIVIDENDS', '2025-07-07 09:00:00', mines, '120', gross('0.25', '30.00', '5.70')),
      movement,
    ],
    account: [cash('DEPOSIT', '2023-09-01', '800.00'), credit],
    changes: [
      {
        day: '2026-01-07',
        // `titles` of UNKNOWN is the position. That of a sale is the number of shares sold.
        portfolio: [
          { ...movement, type: 'OFF_MARKET_SELL', titles: '30', ...at('7.10', '213.00') },
        ],
        account: [{ ...credit, type: 'DIVIDENDS', ...netOf(mines, '5.70') }],
      },
    ],
  }
}

function fraction(): Story {
  const { row, cash } = writers('fraction')
  const fund = security('Fondo Demo Índice Global FI', 'ESDEMO00112')
  const trust = security('Demo Coin Trust', 'IEDEMO00113')
  return {
    portfolio: [
      row('BUY', '2024-01-15 12:00:00', fund, '1.25', at('40.00', '50.00')),
      row('BUY', '2024-02-15 12:00:00', fund, '1.5625', at('32.00', '50.00')),
      row('BUY', '2024-03-15 12:00:00', fund, '0.78125', at('64.00', '50.00')),
      // Floats make 0.30000000000000004 of these two.
      row('BUY', '2024-05-02 10:00:00', trust, '0.1', at('300.00', '30.00')),
      row('BUY', '2024-05-03 10:00:00', trust, '0.200000000000000003', at('310.00', '62.00')),
      row('DIVIDENDS', '2024-12-16 09:00:00', fund, '3.59375', gross('0.32', '1.15', '0.22')),
      row('SELL', '2025-04-10 12:00:00', fund, '2.03125', at('64.00', '130.00')),
      row('SELL', '2025-04-11 10:00:00', trust, '0.300000000000000003', at('320.00', '96.00')),
    ],
    account: [
      cash('DEPOSIT', '2024-01-10', '250.00'),
      cash('DIVIDENDS', '2024-12-16 09:00:00', '0.93', netOf(fund, '0.22')),
    ],
  }
}

function foreign(): Story {
  const { row, cash } = writers('foreign')
  const rail = security('Demo Rail Inc.', 'USDEMO00114')
  const dollars = (exchangeRate: string, amountBaseCurrency?: string) => ({
    currency: 'USD',
    localCurrency: 'EUR',
    exchangeRate,
    ...(amountBaseCurrency && { amountBaseCurrency }),
  })
  return {
    portfolio: [
      row('BUY', '2023-08-14 20:15:00', rail, '30', {
        ...at('50.00', '1500.00', '5.00'),
        ...dollars('1.25', '1200.00'),
      }),
      row('DIVIDENDS', '2024-02-20 15:00:00', rail, '30', {
        ...gross('0.80', '24.00', '7.20'),
        ...dollars('1.20', '20.00'),
        retentionDetail: { retentionFrom: '3.60', retentionTo: '3.60' },
      }),
      row('SELL', '2025-01-27 21:00:00', rail, '15', {
        ...at('64.00', '960.00', '6.40'),
        ...dollars('1.28', '750.00'),
      }),
    ],
    account: [
      cash('DEPOSIT', '2023-08-01', '2000.00'),
      cash('FOREX_WITHDRAWAL', '2023-08-14 20:10:00', '-1204.00', {
        exchangeRate: '1.25',
        localCurrency: 'USD',
      }),
      cash('FOREX_DEPOSIT', '2023-08-14 20:10:00', '1505.00', dollars('1.25')),
      cash('DIVIDENDS', '2024-02-20 15:00:00', '16.80', {
        ...netOf(rail, '7.20'),
        ...dollars('1.20'),
      }),
    ],
  }
}

function transfer(): Story {
  const { portfolio, row, cash } = writers('transfer')
  const insurance = security('Seguros Demo', 'ESDEMO00115')
  const second = { portfolioId: portfolio('2') }
  return {
    portfolio: [
      row('BUY', '2023-02-06 10:00:00', insurance, '100', at('5.00', '500.00')),
      row('BUY', '2023-06-05 10:00:00', insurance, '50', { ...at('6.00', '300.00'), ...second }),
      row('BUY', '2023-11-06 10:00:00', insurance, '50', at('6.40', '320.00')),
      ...linked(
        row('TRANSFER_OUT', '2024-05-06 08:00:00', insurance, '120'),
        row('TRANSFER_IN', '2024-05-06 08:00:01', insurance, '120', second),
      ),
      row('DIVIDENDS', '2024-06-20 09:00:00', insurance, '30', gross('0.10', '3.00', '0.57')),
      row('DIVIDENDS', '2024-06-20 09:00:01', insurance, '170', {
        ...gross('0.10', '17.00', '3.23'),
        ...second,
      }),
      row('SELL', '2025-01-13 11:11:00', insurance, '130', { ...at('7.00', '910.00'), ...second }),
    ],
    account: [
      cash('DEPOSIT', '2023-02-01', '1200.00'),
      cash('DIVIDENDS', '2024-06-20 09:00:00', '2.43', netOf(insurance, '0.57')),
      cash('DIVIDENDS', '2024-06-20 09:00:01', '13.77', netOf(insurance, '3.23')),
    ],
    orders: [
      {
        id: idOf('transfer order'),
        portfolio: 'ES-4471-0101',
        investment: insurance.id,
        name: insurance.name,
        isin: insurance.isin,
        currency: 'EUR',
        assetType: 'STOCK',
        titles: '120',
        amount: '816.00',
        total: false,
        completedAt: '2024-05-03T09:12:00Z',
      },
    ],
  }
}

/** The institution has no rows before 2021-06-30, so 40 shares have no purchase. */
function gap(): Story {
  const { row, cash } = writers('gap')
  const brewery = security('Cervezas Demo', 'ESDEMO00116')
  return {
    portfolio: [
      row('DIVIDENDS', '2021-06-30 09:00:00', brewery, '40', gross('0.50', '20.00', '3.80')),
      row('BUY', '2022-03-14 10:00:00', brewery, '10', at('30.00', '300.00')),
      row('DIVIDENDS', '2022-06-30 09:00:00', brewery, '50', gross('0.50', '25.00', '4.75')),
    ],
    account: [
      cash('DIVIDENDS', '2021-06-30 09:00:00', '16.20', netOf(brewery, '3.80')),
      cash('DEPOSIT', '2022-03-01', '400.00'),
      cash('DIVIDENDS', '2022-06-30 09:00:00', '20.25', netOf(brewery, '4.75')),
    ],
  }
}

export const stories = {
  split: split(),
  merger: merger(),
  scrip: scrip(),
  isin: isin(),
  late: late(),
  correction: correction(),
  cancel: cancel(),
  unknown: unknown(),
  fraction: fraction(),
  foreign: foreign(),
  transfer: transfer(),
  gap: gap(),
}
