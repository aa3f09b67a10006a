import { anyText } from '../awkward-rows.ts'
import { fc } from '../random.ts'
import type { ModelQuery, ModelRow } from './pages.ts'

/** One change of a connection, or one request. */
export type Step =
  | { type: 'add'; rows: ModelRow[] }
  /** Each number picks a row, modulo the number of rows. */
  | { type: 'remove'; picks: number[] }
  | { type: 'change'; pick: number; into: Omit<ModelRow, 'id'> }
  | { type: 'read'; query: ModelQuery }
  | { type: 'walk'; query: ModelQuery }

/** Few days, so that rows share one: ends of months, a leap day, the first and last valid day. */
const fewDays = fc.constantFrom(
  '2024-02-28',
  '2024-02-29',
  '2024-03-01',
  '2024-03-02',
  '0001-01-01',
  '9999-12-31',
)
const manyDays = fc
  .date({ min: new Date('2015-01-01'), max: new Date('2025-12-31'), noInvalidDate: true })
  .map((date) => date.toISOString().slice(0, 10))
const day = fc.oneof({ weight: 3, arbitrary: fewDays }, manyDays)

const hour = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('09:00:00', '09:00:01', '23:59:59', '9:00', '') },
  { weight: 1, arbitrary: fc.constantFrom('ñ', 'Z', 'z', '\uffee', '😀', 'e\u0301', 'é') },
  { weight: 1, arbitrary: anyText(6) },
)

const digits = fc
  .tuple(fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n }), fc.nat(38))
  .map(([whole, zeros]) => (zeros === 0 ? `${whole}` : `${whole}.${'0'.repeat(zeros - 1)}1`))

const dates = fc.oneof(
  { weight: 3, arbitrary: fc.record({ operationDateDay: day, valueDateDay: fc.option(day) }) },
  { weight: 1, arbitrary: fc.record({ operationDateDay: fc.constant(null), valueDateDay: day }) },
)

const content = fc
  .tuple(
    dates,
    fc.record({
      operationDateHour: fc.option(hour, { freq: 3 }),
      description: fc.option(anyText(20)),
      amount: digits,
    }),
  )
  .map(([when, what]) => ({ ...when, ...what }))

const row: fc.Arbitrary<ModelRow> = fc
  .tuple(fc.uuid(), content)
  .map(([id, fields]) => ({ id, ...fields }))

/** The first pages, some of them past the end, and the largest valid page. */
const page = fc.oneof({ weight: 5, arbitrary: fc.nat(6) }, fc.constant(2_147_483_647))

const range = fc
  .tuple(fc.option(day, { nil: undefined }), fc.option(day, { nil: undefined }))
  .map(([a, b]) => (a !== undefined && b !== undefined && a > b ? [b, a] : [a, b]))
  .map(([from, to]) => ({ from, to }))

const query: fc.Arbitrary<ModelQuery> = fc
  .tuple(
    range,
    fc.record({
      limit: fc.option(fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constant(10_000)), {
        nil: undefined,
      }),
      page: fc.option(page, { nil: undefined }),
    }),
  )
  .map(([days, paging]) => ({ ...days, ...paging }))

const rows = fc.uniqueArray(row, { minLength: 1, maxLength: 25, selector: ({ id }) => id })

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ type: fc.constant('add' as const), rows }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('remove' as const),
      picks: fc.array(fc.nat(), { minLength: 1, maxLength: 8 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('change' as const), pick: fc.nat(), into: content }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('read' as const), query }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('walk' as const), query }) },
)

/** History of a connection: initial rows, then changes and requests. */
export const history = fc
  .tuple(rows, fc.array(step, { minLength: 3, maxLength: 14 }))
  .map(([first, steps]): Step[] => [{ type: 'add', rows: first }, ...steps])
