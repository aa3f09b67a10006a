import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { medianOf, type Series } from '../load/measure.ts'
import type { Sample } from '../load/runners.ts'
import { SERVICE } from '../servers/targets.ts'
import { measuredOn } from './measured-on.ts'

/** The pages with results for operators. The other parts have a file each. */
const PAGES = ['../../docs/performance.md', '../../docs/scale.md']

/** Replaces the text between the markers of `part`, in the page that has them. The new text begins with its date. */
export async function writePart(part: string, markdown: string): Promise<void> {
  const [begin, end] = [`<!-- ${part}: begin -->`, `<!-- ${part}: end -->`]
  for (const path of [...PAGES, `../results/${part}.md`]) {
    const page = join(import.meta.dirname, path)
    const text = await readFile(page, 'utf8')
    const [from, to] = [text.indexOf(begin), text.indexOf(end)]
    if (from < 0 || to < from) continue
    const before = text.slice(0, from + begin.length)
    const found = `${measuredOn()}\n\n${markdown.trim()}`
    return writeFile(page, `${before}\n\n${found}\n\n${text.slice(to)}`)
  }
  throw new Error(`no page has a place for the part "${part}"`)
}

export function table(columns: string[], rows: (string | number | undefined)[][]): string {
  const line = (cells: (string | number | undefined)[]) =>
    `| ${cells.map((cell) => cell ?? '–').join(' | ')} |`
  const rule = columns.map((_, index) => (index === 0 ? '---' : '---:'))
  return [line(columns), line(rule), ...rows.map(line)].join('\n')
}

const COLUMNS = [
  'Load and server',
  'Requests/s',
  'spread',
  'service ÷ row',
  'p50 ms',
  'p99 ms',
  'CPU ms, server',
  'CPU ms, PostgreSQL',
  'peak MB',
  'rejected',
]

/**
 * Every load with all its servers: medians over the rounds.
 * @param first name of the first server of each load, in the heading of the ratio
 */
export function loadTable(series: Series[], first = 'service'): string {
  const rows = [...Map.groupBy(series, ({ load }) => load.key)].flatMap(([key, all]) => {
    const rate = medianOf(all[0]?.samples ?? [], 'rate') ?? Number.NaN
    return [
      [`**(${key})** ${all[0]?.load.title}`, ...Array(COLUMNS.length - 1).fill('')],
      ...all.map(({ target, samples }) => lineOf(target, samples, rate)),
    ]
  })
  return table(
    COLUMNS.map((name) => name.replace('service', first)),
    rows,
  )
}

/** Every load of the service alone, for operators: medians over the rounds. */
export function serviceTable(series: Series[]): string {
  const columns = [
    'Load',
    'Requests/s',
    'spread',
    'p50 ms',
    'p99 ms',
    'CPU ms, server',
    'CPU ms, PostgreSQL',
    'peak MB',
  ]
  const rows = series
    .filter(({ target }) => target === SERVICE)
    .map(({ load, samples }) => [
      `(${load.key}) ${load.title}`,
      digits(medianOf(samples, 'rate')),
      spreadOf(samples),
      digits(medianOf(samples, 'p50')),
      digits(medianOf(samples, 'p99')),
      digits(medianOf(samples, 'serverCpu')),
      digits(medianOf(samples, 'databaseCpu')),
      medianOf(samples, 'memory')?.toFixed(0),
    ])
  return table(columns, rows)
}

function lineOf(target: string, samples: Sample[], service: number) {
  const rate = medianOf(samples, 'rate') ?? Number.NaN
  return [
    target,
    digits(rate),
    spreadOf(samples),
    digits(service / rate),
    digits(medianOf(samples, 'p50')),
    digits(medianOf(samples, 'p99')),
    digits(medianOf(samples, 'serverCpu')),
    digits(medianOf(samples, 'databaseCpu')),
    medianOf(samples, 'memory')?.toFixed(0),
    samples.reduce((sum, { rejected = 0 }) => sum + rejected, 0) || '',
  ]
}

/** Difference between the fastest and the slowest round, relative to the median. */
function spreadOf(samples: Sample[]): string {
  if (samples.length < 2) return 'one round'
  const rates = samples.map(({ rate }) => rate)
  const spread = (Math.max(...rates) - Math.min(...rates)) / (medianOf(samples, 'rate') ?? 0)
  return `${(spread * 100).toFixed(0)} %`
}

/** Three significant digits; the spread between rounds is larger. */
export function digits(value: number | undefined): string | undefined {
  if (value === undefined || !Number.isFinite(value)) return undefined
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value.toPrecision(3).replace(/^0\.00\d+$/, '<0.01')
}
