/**
 * The process of test files: runs one after the other, as the parent sends their names, and sends back the result of each. A
 * file that fails is the last one, because it may leave something behind.
 */
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Test, t } from 'tap'

/** Number of assertions of a file. */
export interface FileCounts {
  passed: number
  failed: number
}

/** What the parent sends. */
export interface Task {
  /** The next file; without one, the process ends. */
  file?: string
}

const { TAP_TIMEOUT } = process.env

/** The test of the file that runs. */
export let testOfFile: Test = t
let url = ''

// Each file has a time limit of its own.
t.setTimeout(0)

// A file imports `t` from tap, and gets its own test instead of that of the process: what it opens ends with it.
const OWN_TEST = 'test-of:'
registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier !== 'tap' || context.parentURL !== url) return next(specifier, context)
    return { url: OWN_TEST + url, shortCircuit: true }
  },
  load: (address, context, next) => {
    if (!address.startsWith(OWN_TEST)) return next(address, context)
    const here = JSON.stringify(import.meta.url)
    const source = `import { testOfFile as t } from ${here}; export { t }; export default t`
    return { format: 'module', source, shortCircuit: true }
  },
})

/** Runs a file as one test. */
async function run(file: string): Promise<FileCounts> {
  url = pathToFileURL(resolve(file)).href
  const timeout = Number(TAP_TIMEOUT) * 1000
  await t.test(file, { timeout, at: null }, async (test) => {
    testOfFile = test
    await import(url)
  })
  const { pass, fail, total } = testOfFile.counts
  if (total === 0) t.fail('This file asserts nothing.', { at: null })
  const isBad = !t.passing()
  return { passed: pass, failed: isBad ? Math.max(fail, 1) : 0 }
}

process.on('message', async ({ file }: Task) => {
  if (file !== undefined) process.send?.(await run(file))
  // tap lets the process end while it waits for the parent.
  process.channel?.ref()
  if (file === undefined || !t.passing()) process.disconnect()
})
