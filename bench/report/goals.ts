import { medianOf, type Series } from '../load/measure.ts'
import { DATABASE_LIMIT } from '../load/runners.ts'
import { EXPRESS, NEST, PLATFORMATIC, SERVICE } from '../servers/targets.ts'
import { digits, table } from './tables.ts'

/** Goals of the service against the other servers, with the results of one run. */
export function goalTable(series: Series[]): string {
  const rate = (load: string, target = SERVICE) => {
    const found = series.find((one) => one.load.key === load && one.target === target)
    return (found && medianOf(found.samples, 'rate')) ?? Number.NaN
  }
  const against = (load: string, target: string) => rate(load) / rate(load, target)
  const smallest = [NEST, PLATFORMATIC].map((target) => smallestLead(series, target, against))
  const rows: [string, string, string | undefined][] = [
    ['(a) ÷ Express + pg', '≥ 2', digits(against('a', EXPRESS))],
    ['(a) ÷ the database alone', '≥ 0.5', digits(against('a', DATABASE_LIMIT))],
    ['(b) ÷ Express + pg', '≥ 2', digits(against('b', EXPRESS))],
    ['(b) ÷ the database alone', '≥ 0.5', digits(against('b', DATABASE_LIMIT))],
    [`(a) ÷ ${NEST}`, '≥ 4', digits(against('a', NEST))],
    [`(a) ÷ ${PLATFORMATIC}`, '≥ 4', digits(against('a', PLATFORMATIC))],
    [`the smallest lead over ${NEST}, on any load`, '> 1', smallest[0]],
    [`the smallest lead over ${PLATFORMATIC}, on any load`, '> 1', smallest[1]],
    ['time of (c last) ÷ time of (a)', '≤ 1.5', digits(rate('a') / rate('c last'))],
    ['(e) ÷ (b)', '≥ 3', digits(rate('e') / rate('b'))],
  ]
  return table(['Requests/s of the service', 'goal', 'measured'], rows)
}

function smallestLead(
  series: Series[],
  target: string,
  against: (load: string, target: string) => number,
): string {
  const leads = series
    .filter((one) => one.target === target)
    .map(({ load }) => ({ key: load.key, lead: against(load.key, target) }))
  const [least] = leads.toSorted((a, b) => a.lead - b.lead)
  return least ? `${digits(least.lead)} on (${least.key})` : ''
}
