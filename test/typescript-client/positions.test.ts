import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import {
  type PortfolioTransaction,
  positionEffect,
  SqliteStore,
} from '../../clients/typescript/src/index.ts'
import { PortfolioTransactionTypes } from '../../src/schemas/portfolio-transaction.ts'
import { startDrivers } from '../support/clients/drivers.ts'

/** Order and positions of rows that are given here, without the service. */
const clients = Object.entries(startDrivers(t))

t.test('TypeScript: the effect of a type is that of the document', async (t) => {
  for (const [type, [effect]] of Object.entries(PortfolioTransactionTypes))
    t.equal(positionEffect(type), effect, type)
  for (const type of ['A_LATER_TYPE', '', 'toString', '__proto__'])
    t.equal(positionEffect(type), undefined, type)
})

type Given = [type: string, day: string, titles?: string | null, more?: object]

/** Makes a copy with these rows. Their identifiers are `0`, `1` and so on. */
function copyOf(t: Test, given: Given[]): string {
  const file = join(t.testdir({}), 'copy.db')
  const db = new DatabaseSync(file)
  const store = new SqliteStore(db, 'mine')
  const upserts = given.map(([type, moment, titles = null, more = {}], index) => {
    const [day, hour = null] = moment.split(' ')
    const row = {
      transactionId: String(index),
      portfolioId: 'p',
      investment: 'x',
      type,
      titles,
      operationDateDay: day,
      operationDateHour: hour,
      valueDateDay: null,
      relatedTransaction: null,
      ...more,
    }
    return { id: String(index), row: row as unknown as PortfolioTransaction }
  })
  const list = 'portfolio_transactions'
  const changes = {
    list,
    copy: 'next',
    since: null,
    cursor: 'c',
    removed: [],
    state: null,
  } as const
  store.apply({ ...changes, removed: [], upserts })
  store.swap(list, 'c')
  db.close()
  return file
}

const to = (id: number) => ({ relatedTransaction: String(id) })

const ORDERS: [name: string, given: Given[], ids: string][] = [
  [
    'days and hours',
    [
      ['SELL', '2025-01-02 09:00:00'],
      ['BUY', '2025-01-01 10:00:00'],
      ['BUY', '2025-01-01 09:30:00'],
    ],
    '2 1 0',
  ],
  [
    'a split, either way round',
    [
      ['SPLIT_BUY', '2025-01-01', '2', to(1)],
      ['SPLIT_SELL', '2025-01-01', '1', to(0)],
    ],
    '1 0',
  ],
  [
    'only the incoming row names the other',
    [
      ['MERGER_BUY', '2025-01-01', '2', to(1)],
      ['MERGER_SELL', '2025-01-01', '1'],
    ],
    '1 0',
  ],
  [
    'only the outgoing row names the other',
    [
      ['TRANSFER_IN', '2025-01-01', '2'],
      ['TRANSFER_OUT', '2025-01-01', '1', to(0)],
    ],
    '1 0',
  ],
  [
    'equal hours',
    [
      ['SPLIT_BUY', '2025-01-01 08:00:00', '2', to(1)],
      ['SPLIT_SELL', '2025-01-01 08:00:00', '1', to(0)],
    ],
    '1 0',
  ],
  [
    'a purchase before, a sale after',
    [
      ['SELL', '2025-01-01'],
      ['BUY', '2025-01-01'],
      ['SELL', '2025-01-01 12:00:00'],
    ],
    '1 2 0',
  ],
  [
    'a purchase, a split and a sale',
    [
      ['SELL', '2025-01-01'],
      ['SPLIT_BUY', '2025-01-01', '2', to(2)],
      ['SPLIT_SELL', '2025-01-01', '1', to(1)],
      ['BUY', '2025-01-01'],
    ],
    '3 2 1 0',
  ],
  [
    'rights are granted before they are converted',
    [
      ['RIGHTS_CONVERSION_BUY', '2025-01-01', '1', to(1)],
      ['RIGHTS_CONVERSION_SELL', '2025-01-01', '9', to(0)],
      ['RIGHTS_ISSUE', '2025-01-01', '9', to(1)],
    ],
    '2 1 0',
  ],
  [
    'the value date, without an operation date',
    [
      ['BUY', '2025-01-02'],
      ['BUY', '2025-01-09', '1', { operationDateDay: null, valueDateDay: '2025-01-01' }],
    ],
    '1 0',
  ],
]

/** A history whose stated positions are right. */
const complete = (position: string, verifiedFrom = '2025-01-01', verifiedRows = 1) => ({
  status: 'complete',
  verifiedRows,
  verifiedFrom,
  position,
})
/** A history that nobody can verify. */
const unknown = (reason: string, position: string | null = null, ...others: string[]) => ({
  status: 'notVerifiable',
  verifiedRows: 0,
  verifiedFrom: null,
  position,
  reason,
  reasons: [reason, ...others],
})
const gap = (day: string, expected: string, found: string, position: string | null) => ({
  status: 'gap',
  verifiedRows: 0,
  verifiedFrom: null,
  position,
  firstGap: { day, expected, found },
})

/** A cancelled purchase, as inputs of real institutions have it. */
const CANCELLED: Given[] = [
  ['BUY', '2021-03-30 10:38:28', '40'],
  ['BUY', '2021-03-30 10:38:29', '-40', { relatedTransaction: '0' }],
  ['BUY', '2021-03-30 10:38:30', '40'],
]

const CHECKS: [name: string, given: Given[], check: object][] = [
  [
    'a stated position that is right',
    [
      ['BUY', '2025-01-01', '10'],
      ['DIVIDENDS', '2025-02-01', '10.00'],
    ],
    complete('10'),
  ],
  [
    'digits beyond a float',
    [
      ['BUY', '2025-01-01', `${'9'.repeat(38)}.${'0'.repeat(37)}1`],
      ['COUPON', '2025-02-01', `${'9'.repeat(38)}.${'0'.repeat(37)}1`],
    ],
    complete(`${'9'.repeat(38)}.${'0'.repeat(37)}1`),
  ],
  [
    'a sum with more than 28 digits',
    [
      ['BUY', '2025-01-01', `1${'0'.repeat(37)}`],
      ['BUY', '2025-01-02', '0.00000000000000000000000000000000000001'],
      ['COUPON', '2025-02-01', `1${'0'.repeat(37)}.00000000000000000000000000000000000001`],
    ],
    complete(`1${'0'.repeat(37)}.00000000000000000000000000000000000001`),
  ],
  [
    'outgoing shares with a minus',
    [
      ['BUY', '2025-01-01', '10'],
      ['SELL', '2025-01-02', '-4'],
      ['DIVIDENDS', '2025-02-01', '6'],
    ],
    complete('6'),
  ],
  ['a cancelled purchase', CANCELLED, unknown('negativeShares')],
  [
    'a cancelled purchase, and a position after it',
    [...CANCELLED, ['DIVIDENDS', '2021-06-30', '40']],
    unknown('negativeShares', '40'),
  ],
  [
    'a purchase that was cancelled before the history begins',
    [
      ['BUY', '2025-01-01', '-40'],
      ['DIVIDENDS', '2025-01-02', '40'],
    ],
    unknown('negativeShares'),
  ],
  [
    'a cancelled sale',
    [
      ['BUY', '2025-01-01', '10'],
      ['SELL', '2025-01-02', '-4'],
      ['SELL', '2025-01-03', '4'],
      ['DIVIDENDS', '2025-01-04', '10'],
    ],
    unknown('bothSigns'),
  ],
  [
    'a stated position below zero',
    [
      ['BUY', '2025-01-01', '10'],
      ['UNKNOWN', '2025-01-02', '-10'],
    ],
    unknown('negativeShares'),
  ],
  [
    'a stated position below zero, and a position after it',
    [
      ['BUY', '2025-01-01', '2.5'],
      ['SELL', '2025-01-02', '-1.25'],
      ['BUY', '2025-01-03', '0.5'],
      ['UNKNOWN', '2025-01-03', '-0.5'],
      ['DIVIDENDS', '2025-06-15', '1.25'],
    ],
    unknown('negativeShares', '1.25'),
  ],
  [
    'a dividend for the shares of its record date',
    [
      ['BUY', '2025-01-02', '100'],
      ['BUY', '2025-03-05', '50'],
      ['DIVIDENDS', '2025-03-15', '100'],
      ['DIVIDENDS', '2025-06-15', '150'],
    ],
    complete('150', '2025-01-02', 2),
  ],
  [
    'a coupon after the last sale',
    [
      ['BUY', '2025-01-02', '100'],
      ['SELL', '2025-03-05', '100'],
      ['COUPON', '2025-03-15', '100'],
    ],
    complete('0', '2025-01-02'),
  ],
  [
    'a record date eight weeks before the payment',
    [
      ['BUY', '2025-01-02', '100'],
      ['BUY', '2025-03-05', '50'],
      ['DIVIDENDS', '2025-04-30', '100'],
    ],
    complete('150', '2025-01-02'),
  ],
  [
    'a record date that is too long ago',
    [
      ['BUY', '2025-01-02', '100'],
      ['BUY', '2025-03-05', '50'],
      ['DIVIDENDS', '2025-05-02', '100'],
    ],
    gap('2025-05-02', '100', '150', '100'),
  ],
  [
    'other statements have no record date',
    [
      ['BUY', '2025-01-02', '100'],
      ['BUY', '2025-03-05', '50'],
      ['COMPENSATION', '2025-03-15', '100'],
    ],
    gap('2025-03-15', '100', '150', '100'),
  ],
  [
    'no shares before the first purchase',
    [
      ['BUY', '2025-01-02', '100'],
      ['DIVIDENDS', '2025-01-15', '0'],
    ],
    gap('2025-01-15', '0', '100', '0'),
  ],
  [
    'a gap, and a record date that is not known',
    [
      ['BUY', '2025-01-02', '10'],
      ['BUY', '2025-03-05', '5'],
      ['DIVIDENDS', '2025-03-15', '50'],
    ],
    gap('2025-03-15', '50', '15', null),
  ],
  [
    'a gap, and a later statement that tells the record date',
    [
      ['BUY', '2025-01-02', '10'],
      ['BUY', '2025-03-05', '5'],
      ['DIVIDENDS', '2025-03-15', '50'],
      ['DIVIDENDS', '2025-06-15', '55'],
    ],
    {
      ...gap('2025-03-15', '50', '15', '55'),
      verifiedRows: 1,
      verifiedFrom: '2025-03-15',
    },
  ],
  [
    'shares that are missing',
    [
      ['BUY', '2025-01-01', '10.50'],
      ['DIVIDENDS', '2025-02-01', '50.5'],
      ['DIVIDENDS', '2025-03-01', '50.5'],
      ['SELL', '2025-03-02', '50.5'],
      ['BUY', '2025-03-03', '1'],
      ['COUPON', '2025-03-04', '1'],
    ],
    {
      ...gap('2025-02-01', '50.5', '10.50', '1.00'),
      verifiedRows: 2,
      verifiedFrom: '2025-02-01',
    },
  ],
  [
    'a history without its beginning',
    [
      ['DIVIDENDS', '2021-06-30', '40'],
      ['BUY', '2021-07-01', '1'],
    ],
    gap('2021-06-30', '40', '0', '41'),
  ],
  [
    'two gaps: the first',
    [
      ['DIVIDENDS', '2025-01-01', '1'],
      ['DIVIDENDS', '2025-01-02', '2'],
      ['DIVIDENDS', '2025-01-03', '2'],
    ],
    {
      ...gap('2025-01-01', '1', '0', '2'),
      verifiedRows: 1,
      verifiedFrom: '2025-01-02',
    },
  ],
  [
    'more shares leave than had arrived: a short sale, or a gap',
    [
      ['SELL', '2024-01-10 10:00:00', '12'],
      ['BUY', '2024-02-10 10:00:00', '12'],
    ],
    unknown('shortPosition'),
  ],
  [
    'more shares leave than had arrived, and a row states others',
    [
      ['BUY', '2025-01-01', '10'],
      ['SELL', '2025-02-01', '30.5'],
      ['COMPENSATION', '2025-02-02', '70'],
    ],
    {
      ...gap('2025-02-02', '70', '-20.5', '70.0'),
      reason: 'shortPosition',
      reasons: ['shortPosition'],
    },
  ],
  [
    'more shares leave than had arrived, and a row states what is left',
    [
      ['SELL', '2025-01-01', '5'],
      ['BUY', '2025-01-02', '8'],
      ['DIVIDENDS', '2025-06-01', '3'],
    ],
    { ...unknown('shortPosition', '3'), verifiedRows: 1, verifiedFrom: '2025-01-01' },
  ],
  [
    'a sale before its purchase on one day',
    [
      ['SELL', '2025-01-01 09:00:00', '5'],
      ['BUY', '2025-01-01 15:00:00', '5'],
      ['DIVIDENDS', '2025-01-02', '0'],
    ],
    complete('0'),
  ],
  [
    'nothing states a position',
    [
      ['BUY', '2025-01-01', '10'],
      ['DIVIDENDS', '2025-02-01', null],
    ],
    unknown('noStatement', '10'),
  ],
  [
    'a purchase without shares, and a statement of a later record date',
    [
      ['BUY', '2025-01-01', null],
      ['DIVIDENDS', '2025-03-01', '7'],
    ],
    unknown('noShares', '7'),
  ],
  [
    'a purchase without shares, and a statement that may be of the day before it',
    [
      ['BUY', '2025-01-01', '100'],
      ['BUY', '2025-03-05', null],
      ['DIVIDENDS', '2025-03-15', '100'],
      ['DIVIDENDS', '2025-06-15', '150'],
    ],
    unknown('noShares', '150'),
  ],
  [
    'shares are known again',
    [
      ['BUY', '2025-01-01', null],
      ['DIVIDENDS', '2025-03-01', '7'],
      ['SELL', '2025-03-02', '2'],
      ['DIVIDENDS', '2025-06-01', '5'],
    ],
    { ...unknown('noShares', '5'), verifiedRows: 1, verifiedFrom: '2025-03-01' },
  ],
  [
    'a type without an effect',
    [
      ['BUY', '2025-01-01', '1'],
      ['EXPIRATION', '2025-02-01', '1'],
      ['DIVIDENDS', '2025-06-01', '9'],
    ],
    unknown('noEffect', '9'),
  ],
  [
    'a later type',
    [
      ['BUY', '2025-01-01', '1'],
      ['DIVIDENDS', '2025-01-02', '1'],
      ['A_LATER_TYPE', '2025-02-01', '1'],
    ],
    { ...unknown('noEffect'), verifiedRows: 1, verifiedFrom: '2025-01-01' },
  ],
  [
    'an hour decides',
    [
      ['BUY', '2025-01-01 09:00:00', '1'],
      ['DIVIDENDS', '2025-01-01 10:00:00', '1'],
      ['BUY', '2025-01-01 11:00:00', '1'],
    ],
    complete('2'),
  ],
  [
    'an hour decides against it',
    [
      ['BUY', '2025-01-01 09:00:00', '1'],
      ['DIVIDENDS', '2025-01-01 10:00:00', '2'],
      ['BUY', '2025-01-01 11:00:00', '1'],
    ],
    gap('2025-01-01', '2', '1', '3'),
  ],
  [
    'without an hour, any position of the day',
    [
      ['BUY', '2025-01-01', '1'],
      ['BUY', '2025-01-02 11:00:00', '1'],
      ['DIVIDENDS', '2025-01-02', '2'],
      ['SELL', '2025-01-02', '1'],
    ],
    complete('1'),
  ],
  [
    'rows of one hour have no order',
    [
      ['BUY', '2025-01-01 09:00:00', '3'],
      ['SELL', '2025-01-01 10:00:00', '3'],
      ['DIVIDENDS', '2025-01-01 10:00:00', '0'],
    ],
    complete('0'),
  ],
  [
    'two positions of a day that has both',
    [
      ['BUY', '2025-01-01', '40'],
      ['UNKNOWN', '2025-01-02', '100'],
      ['UNKNOWN', '2025-01-02', '40'],
      ['BUY', '2025-01-02', '60'],
    ],
    complete('100', '2025-01-01', 2),
  ],
  [
    'two positions of a day, and only more shares at its start explain both',
    [
      ['BUY', '2025-01-01', '60'],
      ['UNKNOWN', '2025-01-01', '60'],
      ['UNKNOWN', '2025-01-01', '120'],
    ],
    gap('2025-01-01', '120', '60', '120'),
  ],
  [
    'two dividends of two record dates',
    [
      ['BUY', '2025-01-01', '40'],
      ['BUY', '2025-01-10', '60'],
      ['DIVIDENDS', '2025-01-20', '100'],
      ['DIVIDENDS', '2025-01-20', '40'],
    ],
    complete('100', '2025-01-01', 2),
  ],
  [
    'a dividend that may be of the day before a purchase without shares',
    [
      ['BUY', '2025-01-01', '100'],
      ['BUY', '2025-03-05', null],
      ['UNKNOWN', '2025-03-06', '150'],
      ['DIVIDENDS', '2025-03-15', '100'],
    ],
    unknown('noShares', '150'),
  ],
  [
    'a stated position and a sale without shares on one day',
    [
      ['BUY', '2025-01-01', '100'],
      ['SELL', '2025-01-02', null],
      ['UNKNOWN', '2025-01-02', '50'],
    ],
    unknown('noShares'),
  ],
  [
    'no investment',
    [
      ['BUY', '2025-01-01', '1', { investment: null }],
      ['DIVIDENDS', '2025-01-02', '1', { investment: null }],
    ],
    { ...unknown('noInvestment'), investment: null },
  ],
]

/** Histories with more than one reason. */
const SEVERAL_REASONS: [name: string, given: Given[], check: object][] = [
  [
    'rows of one moment, then a cancellation, then a short sale',
    [
      ['UNKNOWN', '2025-01-01', '40'],
      ['UNKNOWN', '2025-01-01', '100'],
      ['BUY', '2025-02-01', '-5'],
      ['UNKNOWN', '2025-03-01', '10'],
      ['SELL', '2025-04-01', '30'],
    ],
    unknown('differentStatements', null, 'negativeShares', 'shortPosition'),
  ],
  [
    'two reasons in one moment',
    [
      ['EXPIRATION', '2025-01-01', '1'],
      ['BUY', '2025-01-01', '-5'],
    ],
    unknown('negativeShares', null, 'noEffect'),
  ],
]

/** Positions of one moment that contradict each other. The order of the rows, and so of their identifiers, has no effect. */
const CONTRADICTIONS: [name: string, before: Given[], moment: Given[], check: object][] = [
  [
    'a first position',
    [],
    [
      ['UNKNOWN', '2025-01-01', '40'],
      ['UNKNOWN', '2025-01-01', '100'],
    ],
    unknown('differentStatements'),
  ],
  [
    'one of them is what the rows add up to',
    [['BUY', '2025-01-01 09:00:00', '40']],
    [
      ['UNKNOWN', '2025-01-02 10:00:00', '40'],
      ['UNKNOWN', '2025-01-02 10:00:00', '100'],
    ],
    unknown('differentStatements'),
  ],
  [
    'three positions, and a purchase that explains two of them',
    [['BUY', '2025-01-01', '40']],
    [
      ['UNKNOWN', '2025-01-02', '40'],
      ['COMPENSATION', '2025-01-02', '100'],
      ['BUY', '2025-01-02', '60'],
      ['UNKNOWN', '2025-01-02', '7'],
    ],
    unknown('differentStatements'),
  ],
  [
    'one of them is below zero',
    [['BUY', '2025-01-01 09:00:00', '100']],
    [
      ['UNKNOWN', '2025-01-02 10:00:00', '-100'],
      ['UNKNOWN', '2025-01-02 10:00:00', '100'],
    ],
    unknown('negativeShares'),
  ],
  [
    'two dividends of one record date',
    [['BUY', '2025-01-01', '150']],
    [
      ['DIVIDENDS', '2025-06-01', '150'],
      ['DIVIDENDS', '2025-06-01', '30'],
    ],
    unknown('differentStatements'),
  ],
]

for (const [language, client] of clients) {
  for (const [name, before, moment, check] of CONTRADICTIONS)
    t.test(`${language}: positions that contradict each other: ${name}`, async (t) => {
      for (const rows of [moment, moment.toReversed()]) {
        const checks = await client.read(copyOf(t, [...before, ...rows]), 'mine', 'checks')
        t.strictSame(checks, [{ portfolioId: 'p', investment: 'x', ...check }])
      }
      const later: Given = ['UNKNOWN', '2025-12-31', '9']
      const [known] = await client.read(copyOf(t, [...before, ...moment, later]), 'mine', 'checks')
      t.equal(known?.position, '9', 'a later statement')
    })

  for (const [name, given, ids] of ORDERS)
    t.test(`${language}: order: ${name}`, async (t) => {
      const rows = await client.read(copyOf(t, given), 'mine', 'chronological')
      t.equal(rows.map((row) => row.transactionId).join(' '), ids)
    })

  for (const [name, given, check] of [...CHECKS, ...SEVERAL_REASONS])
    t.test(`${language}: positions: ${name}`, async (t) => {
      const file = copyOf(t, given)
      const checks = await client.read(file, 'mine', 'checks')
      t.strictSame(checks, [{ portfolioId: 'p', investment: 'x', ...check }])
      const whys = (entries: Record<string, unknown>[]) =>
        entries.map(({ status, reason, reasons }) => ({ status, reason, reasons }))
      t.strictSame(whys(await client.read(file, 'mine', 'positions')), whys(checks))
    })

  t.test(`${language}: one entry for each portfolio and investment`, async (t) => {
    const file = copyOf(t, [
      ['BUY', '2025-01-01', '1', { portfolioId: 'q' }],
      ['BUY', '2025-01-01', '1', { investment: 'y' }],
      ['TRANSFER_OUT', '2025-02-01', '1', { portfolioId: 'q', ...to(3) }],
      ['TRANSFER_IN', '2025-02-01', '1', to(2)],
      ['DIVIDENDS', '2025-03-01', '1'],
    ])
    const checks = await client.read(file, 'mine', 'checks')
    t.strictSame(
      checks.map(({ portfolioId, investment, status }) => [portfolioId, investment, status]),
      [
        ['p', 'x', 'complete'],
        ['p', 'y', 'notVerifiable'],
        ['q', 'x', 'notVerifiable'],
      ],
    )
  })
}
