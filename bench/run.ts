import { parseArgs } from 'node:util'
import { compareAnswers } from './agreement.ts'
import { measureCompression } from './compression.ts'
import { fill } from './data-set.ts'
import { type BenchServer, withDatabase, withServer } from './database.ts'
import { goalTable } from './goals.ts'
import { measureGrowth } from './growth.ts'
import { measureImport } from './import-rate.ts'
import { loads } from './loads.ts'
import { describeMachine } from './machine.ts'
import { measure } from './measure.ts'
import { measureOverload } from './overload.ts'
import { installPeers } from './peers.ts'
import { loadTable, writePart } from './report.ts'
import { makeRunners } from './runners.ts'
import { withScene } from './scene.ts'
import { measureSessions } from './sessions.ts'
import { measureSizes } from './sizes.ts'
import { measureTotals } from './totals.ts'

const QUICK = { largeRows: 100_000, rounds: 2, durationMs: 300, warmUpMs: 300 }
const FULL = { largeRows: 1_000_000, rounds: 3, durationMs: 2_000, warmUpMs: 5_000 }

const flag = { type: 'boolean', default: false } as const
const { values: flags } = parseArgs({
  options: {
    /** All loads in less than two minutes: fewer and shorter rounds, fewer rows. */
    quick: flag,
    /** Only the loads whose key begins with this; nothing is written to docs/performance.md. */
    only: { type: 'string', default: '' },
    import: flag,
    growth: flag,
    overload: flag,
    sessions: flag,
  },
})

const scale = flags.quick ? QUICK : FULL

/** What can be measured besides the loads, each by its flag. */
const others: Record<string, (server: BenchServer) => Promise<string>> = {
  import: measureImport,
  growth: (server) => measureGrowth(server, scale),
  overload: measureOverload,
  sessions: (server) => measureSessions(server, scale),
}

await withServer(async (server) => {
  const asked = Object.entries(others).filter(([name]) => flags[name as keyof typeof flags])
  for (const [name, measureOther] of asked) await report(name, await measureOther(server))
  if (asked.length === 0) await compareWithPeers(server)
})

/** The loads, and what the same data set and servers can tell besides. */
async function compareWithPeers(server: BenchServer): Promise<void> {
  installPeers()
  const chosen = loads(scale.largeRows).filter(({ key }) => key.startsWith(flags.only))
  await withDatabase(server, async (database) => {
    process.stderr.write('loading the data set …\n')
    await fill(database.owner, scale.largeRows)
    await withScene(database, async (scene) => {
      await compareAnswers(scene.targets, chosen)
      const series = await measure(await makeRunners(scene, chosen), scale)
      const tables = [await describeMachine(database), goalTable(series), loadTable(series)]
      await report(flags.quick ? 'quick' : 'loads', tables.join('\n\n'))
      if (scale === FULL) await report('compression', await measureCompression(scene))
    })
    if (scale === QUICK) return
    await report('totals', await measureTotals(database))
    await report('sizes', await measureSizes(database))
  })
}

/** Shows a part of docs/performance.md, and puts it there. */
async function report(part: string, found: string): Promise<void> {
  console.log(`${found}\n`)
  const whole = flags.only === '' && (part === 'quick' || !flags.quick)
  if (whole) await writePart(part, found)
}
