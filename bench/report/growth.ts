import type { ConstantRates } from '../measurements/constant-rate.ts'
import { digits, table } from './tables.ts'

/** Assumptions of docs/scale.md. */
const ROWS_EACH = 1_500
const REQUESTS = 3
const UNCHANGED = 0.8
const NEW_CONNECTIONS = 0.005
const PAGES_OF_NEW = 2
/** Seconds of a day in which apps send requests: eight hours. */
const ACTIVE_SECONDS = 28_800
/** The highest rate, divided by the mean of these hours. */
const PEAK_FACTOR = 3
/** Part of a processor that is used at the highest rate. */
const UTILIZATION = 0.5
const MACHINE = { least: 2, processors: 2 }

const SIZES = { '100 million rows': 1e8, '10 billion rows': 1e10, '1 trillion rows': 1e12 }

/** Calculates the processors of docs/scale.md from the processor time at half of the highest rate. */
export function processorsOfGrowth({ cpu }: ConstantRates): string {
  const timeOf = (key: string, of: 'server' | 'database') => cpu[key]?.[of] ?? Number.NaN
  const day = (of: 'server' | 'database') =>
    REQUESTS * (UNCHANGED * timeOf('e', of) + (1 - UNCHANGED) * timeOf('b', of)) +
    NEW_CONNECTIONS * PAGES_OF_NEW * timeOf('a', of)
  const processors = (rows: number, of: 'server' | 'database') => {
    const connections = rows / ROWS_EACH
    const cpuSeconds = (connections * day(of)) / 1000
    const meanProcessors = cpuSeconds / ACTIVE_SECONDS
    return (meanProcessors * PEAK_FACTOR) / UTILIZATION
  }
  const machines = (rows: number) =>
    Math.max(MACHINE.least, Math.ceil(processors(rows, 'server') / MACHINE.processors))
  const sizes = Object.values(SIZES)
  const measured: [string, string][] = [
    ['a 304 response', 'e'],
    ['a daily sync of 13 rows', 'b'],
    ['a page of 1,000 rows', 'a'],
  ]
  const times = table(
    ['CPU in ms, at half of the highest rate', 'Node.js', 'PostgreSQL'],
    [
      ...measured.map(([words, key]) => [
        words,
        digits(timeOf(key, 'server')),
        digits(timeOf(key, 'database')),
      ]),
      [
        'a connection on a day: 3 × (0.8 × 304 + 0.2 × sync) + 0.005 × 2 × page',
        digits(day('server')),
        digits(day('database')),
      ],
    ],
  )
  const counts = table(
    ['Connections × CPU on a day ÷ T × P ÷ U', ...Object.keys(SIZES)],
    [
      ['Processors for Node.js', ...sizes.map((rows) => rounded(processors(rows, 'server')))],
      [
        'Processors for PostgreSQL, one database each',
        ...sizes.map((rows) => rounded(processors(rows, 'database'))),
      ],
      ['Machines of the service, with two processors and two instances', ...sizes.map(machines)],
    ],
  )
  return `${counts}\n\n${times}`
}

const rounded = (value: number) => (value < 0.01 ? '<0.01' : value.toPrecision(2))
