import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { fill } from './data/data-set.ts'
import { type PostgresServer, withDatabase, withPostgres } from './data/database.ts'
import { compareResponses } from './load/compare-responses.ts'
import { loads } from './load/loads.ts'
import { describeRounds, measure } from './load/measure.ts'
import { makeRunners } from './load/runners.ts'
import { measureBaseline } from './measurements/baseline.ts'
import { measureChanges } from './measurements/changes.ts'
import { measureCitus } from './measurements/citus.ts'
import { measureConstantRates } from './measurements/constant-rate.ts'
import { exportsTable, measureExports } from './measurements/exports.ts'
import { measureGrowth } from './measurements/growth.ts'
import { measureImport } from './measurements/import-rate.ts'
import { measureInstances } from './measurements/instances.ts'
import { measureNeighbours } from './measurements/neighbours.ts'
import { measureOverload } from './measurements/overload.ts'
import { measurePrices } from './measurements/prices.ts'
import { measureRefresh } from './measurements/refresh.ts'
import { measureSizes } from './measurements/sizes.ts'
import { measureSlowReaders } from './measurements/slow-readers.ts'
import { writeChart } from './report/chart.ts'
import { goalTable } from './report/goals.ts'
import { processorsOfGrowth } from './report/growth.ts'
import { describeMachine } from './report/machine.ts'
import { loadTable, serviceTable, writePart } from './report/tables.ts'
import { withFixture } from './servers/fixture.ts'
import { installComparedServers } from './servers/install.ts'

const QUICK = { largeRows: 100_000, rounds: 2, durationMs: 300, warmUpMs: 300 }
const FULL = { largeRows: 1_000_000, rounds: 3, durationMs: 2_000, warmUpMs: 5_000 }
/** Many short rounds: the samples of a round are compared with each other. */
const BASELINE = { largeRows: 1_000_000, rounds: 12, durationMs: 600, warmUpMs: 900 }
/** All tables of docs/performance.md in a quarter of an hour. A slow machine gets fewer rounds, but at least three. */
const PAGE = {
  largeRows: 1_000_000,
  rounds: 5,
  durationMs: 700,
  warmUpMs: 1_500,
  budgetMs: 420_000,
}
const REFRESHED_ON_PAGE = 5_000

const flag = { type: 'boolean', default: false } as const
const { values: flags } = parseArgs({
  options: {
    /** Runs all loads in less than two minutes: fewer and shorter rounds, fewer rows. */
    quick: flag,
    /** Renews each table of docs/performance.md, and bench/results/loads.md, in ten minutes. */
    page: flag,
    /** Prefix of the keys of the loads to run; writes nothing to a page. */
    only: { type: 'string', default: '' },
    /** Directory of another checkout to compare with. Writes nothing to a page. */
    baseline: { type: 'string', default: '' },
    import: flag,
    changes: flag,
    exports: flag,
    growth: flag,
    instances: flag,
    overload: flag,
    refresh: flag,
    /** Connections that `--refresh` refreshes each day. */
    connections: { type: 'string', default: '20000' },
    sizes: flag,
    /** With `--baseline`, these also measure the other checkout. */
    'slow-readers': flag,
    neighbours: flag,
    prices: flag,
    citus: flag,
  },
})

const scale = scaleOf()

function scaleOf(): typeof FULL & { budgetMs?: number } {
  if (flags.quick) return QUICK
  if (flags.baseline !== '') return BASELINE
  return flags.page ? PAGE : FULL
}

/** Measurements other than the loads, by their flags. */
const others: Record<string, (server: PostgresServer) => Promise<string>> = {
  import: measureImport,
  changes: (server) => measureChanges(server, scale),
  exports: (server) => measureExports(server, scale),
  growth: (server) => measureGrowth(server, scale),
  instances: (server) => measureInstances(server, scale),
  overload: measureOverload,
  refresh: (server) => measureRefresh(server, flags.quick ? 2_000 : Number(flags.connections)),
  sizes: (server) =>
    withDatabase(server, async (database) => {
      await fill(database.owner, scale.largeRows)
      return await measureSizes(database)
    }),
  'slow-readers': (server) => measureSlowReaders(server, baselineFolder()),
  neighbours: (server) => measureNeighbours(server, baselineFolder()),
  prices: measurePrices,
  citus: () => measureCitus(scale),
}

function baselineFolder(): string | undefined {
  return flags.baseline === '' ? undefined : resolve(flags.baseline)
}

await withPostgres(async (server) => {
  const chosen = Object.entries(others).filter(([name]) => flags[name as keyof typeof flags])
  for (const [name, measureOther] of chosen) {
    const found = await measureOther(server)
    // No page has their tables.
    if (name === 'neighbours' || name === 'prices') console.log(found)
    else await report(name, found)
  }
  if (flags.baseline !== '' && chosen.length === 0) {
    console.log(await measureBaseline(server, scale, resolve(flags.baseline), flags.only))
  } else if (chosen.length === 0) await measureLoads(server)
  if (!flags.page) return
  await report('import', await measureImport(server))
  await report('refresh', await measureRefresh(server, REFRESHED_ON_PAGE))
  await report('overload', await measureOverload(server))
})

/** Runs the loads, and the measurements that share their data set and servers. */
async function measureLoads(server: PostgresServer): Promise<void> {
  installComparedServers()
  const chosen = loads(scale.largeRows).filter(({ key }) => key.startsWith(flags.only))
  await withDatabase(server, async (database) => {
    process.stderr.write('loading the data set …\n')
    await fill(database.owner, scale.largeRows)
    await withFixture(database, async (fixture) => {
      await compareResponses([fixture.service, ...fixture.compared], chosen)
      const series = await measure(await makeRunners(fixture, chosen), scale)
      const constant = await measureConstantRates(database, fixture.service, series, scale)
      const rounds = describeRounds(series, scale)
      const loadsFound = [rounds, loadTable(series)].join('\n\n')
      const machine = await describeMachine(database)
      const parts = [machine, rounds, serviceTable(series), goalTable(series)]
      await report('summary', parts.join('\n\n'))
      await report('constant', constant.table)
      if (flags.only === '') await report('growth-processors', processorsOfGrowth(constant))
      await report('loads', loadsFound)
      if (!flags.quick && flags.only === '') await writeChart(loadsFound)
    })
    if (flags.quick) return
    if (flags.page) await report('exports', await exportsTable(database, scale.largeRows))
    else await report('sizes', await measureSizes(database))
  })
}

/** Prints a part of docs/performance.md or a file of bench/results. Writes it there, unless it is a quick or partial run. */
async function report(part: string, found: string): Promise<void> {
  console.log(`${found}\n`)
  if (flags.only === '' && !flags.quick) await writePart(part, found)
}
