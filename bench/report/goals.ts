import { medianOf, type Series } from '../load/measure.ts'
import { PGBENCH } from '../load/runners.ts'
import { EXPRESS, FLOOR, NEST, PLATFORMATIC, SERVICE } from '../servers/targets.ts'
import { digits, table } from './tables.ts'

/** Goals of the service against the other servers, with the results of one run. */
export function goalTable(series: Series[]): string {
  const rate = (load: string, target = SERVICE) => {
    const found = series.find((one) => one.load.key === load && one.target === target)
    return (found && medianOf(found.samples, 'rate')) ?? Number.NaN
  }
  const against = (load: string, target: string) => rate(load) / rate(load, target)
  const serverCpu = (load: string, target = SERVICE) => {
    const found = series.find((one) => one.load.key === load && one.target === target)
    return (found && medianOf(found.samples, 'serverCpu')) ?? Number.NaN
  }
  const layers = (load: string) => serverCpu(load) / serverCpu(load, FLOOR)
  const leadOver = (target: string) => smallestLead(series, target, against)
  const goals: Goal[] = [
    ['(a) ÷ Express + pg', '≥', 2, against('a', EXPRESS)],
    ['(a) ÷ pgbench', '≥', 0.5, against('a', PGBENCH)],
    ['(b) ÷ Express + pg', '≥', 2, against('b', EXPRESS)],
    ['(b) ÷ pgbench', '≥', 0.5, against('b', PGBENCH)],
    [`(a) ÷ ${NEST}`, '≥', 4, against('a', NEST)],
    [`(a) ÷ ${PLATFORMATIC}`, '≥', 4, against('a', PLATFORMATIC)],
    ...[NEST, PLATFORMATIC].map((target): Goal => {
      const { key, lead } = leadOver(target)
      return [`the smallest lead over ${target}, on (${key})`, '≥', 1, lead]
    }),
    ['time of (c last) ÷ time of (a)', '≤', 1.5, rate('a') / rate('c last')],
    ['(e) ÷ (b)', '≥', 3, rate('e') / rate('b')],
    [`(b): CPU of the server ÷ ${FLOOR}`, '≤', 1.2, layers('b')],
    [`(e): CPU of the server ÷ ${FLOOR}`, '≤', 1.2, layers('e')],
  ]
  const rows = goals.map(([what, sign, bound, measured]) => [
    what,
    `${sign} ${bound}`,
    digits(measured),
    isReached(sign, bound, measured) ? 'reached' : 'missed',
  ])
  return table(['Goal of the service', 'goal', 'measured', ''], rows)
}

/** What is measured, and the bound that it must keep. */
type Goal = [what: string, sign: '≥' | '≤', bound: number, measured: number]

/** A figure that was not measured reaches no goal. */
function isReached(sign: '≥' | '≤', bound: number, measured: number): boolean {
  return sign === '≥' ? measured >= bound : measured <= bound
}

function smallestLead(
  series: Series[],
  target: string,
  against: (load: string, target: string) => number,
): { key: string; lead: number } {
  const leads = series
    .filter((one) => one.target === target)
    .map(({ load }) => ({ key: load.key, lead: against(load.key, target) }))
  return leads.reduce((least, next) => (next.lead < least.lead ? next : least), {
    key: '–',
    lead: Number.POSITIVE_INFINITY,
  })
}
