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

const timeout = Number(process.env.TAP_TIMEOUT) * 1000

/** The test of the file that runs. */
export let testOfFile: Test = t
let url = ''

// Each file has a time limit of its own.
t.setTimeout(0)

// A file imports `t` from tap, and gets a test of its own, whose teardowns run when the file ends. Other modules must not
// import `t`: they are loaded once for all files, so they would have the test of another one.
const TAP_OF_FILE = 'tap-of-file:'
registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier !== 'tap') return next(specifier, context)
    if (context.parentURL === url) return { url: TAP_OF_FILE + url, shortCircuit: true }
    throw new Error(`${context.parentURL} imports tap: a helper gets t from its test`)
  },
  load: (address, context, next) => {
    if (!address.startsWith(TAP_OF_FILE)) return next(address, context)
    const here = JSON.stringify(import.meta.url)
    const source = `import { testOfFile as t } from ${here}; export { t }; export default t`
    return { format: 'module', source, shortCircuit: true }
  },
})

/** Runs a file as one test. */
async function run(file: string): Promise<FileCounts> {
  url = pathToFileURL(resolve(file)).href
  // A file ends, also with an unfinished test, if nothing keeps the process alive.
  process.channel?.unref()
  await t.test(file, { timeout, at: null }, async (test) => {
    testOfFile = test
    await import(url)
  })
  const { pass, fail, total } = testOfFile.counts
  if (total === 0) t.fail('This file asserts nothing.', { at: null })
  if (t.passing()) return { passed: pass, failed: 0 }
  return { passed: pass, failed: Math.max(fail, 1) }
}

process.on('message', async ({ file }: Task) => {
  if (file !== undefined) process.send?.(await run(file))
  // The process stays alive while it waits for the next file.
  process.channel?.ref()
  if (file === undefined || !t.passing()) process.disconnect()
})
