/**
 * Plants known faults in a copy of this checkout, one at a time, and runs a command that must find each of them:
 *
 *     npm run plant -- test/simulation/planted.ts
 *     npm run plant -- test/simulation/planted.ts --only 'lost plan'
 *     npm run plant -- test/planted/*.ts
 *     npm run plant -- test/planted/http.ts --all
 *
 * The module of a list exports `plants`: each has a name, a file, the text to search for and its replacement, and the tests
 * that find it. A list may instead export a `command`, and what its output `shows` of a failed check. With --all, all files
 * of `npm test` run. The last lines are a table. It ends with 1 if a fault is not found, if the command fails otherwise, or
 * if a fault no longer applies: its text must be in the file once.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

export interface Plant {
  name: string
  /** Path in the repository. */
  file: string
  search: string
  replace: string
  /** Replaces the command of the list. */
  command?: string[]
  /** Test files that find it: they run if there is no command. */
  tests?: string[]
}

interface PlantList {
  /** Program and arguments. It runs in the copy, and fails if it has found the fault. */
  command?: string[]
  /** What the output of the command has if a check has failed. */
  shows?: RegExp
  environment?: NodeJS.ProcessEnv
  plants: Plant[]
}

/** Folders with packages. */
const PACKAGES = ['.', 'test/clients', 'clients/mcp', 'tools/checks']
/** A test file that has failed, in the output of test/run.ts. */
const FAILED_FILE = /^not ok \d+ of \d+: (\S+)/gm

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string', default: '' }, all: { type: 'boolean', default: false } },
})
const root = resolve(import.meta.dirname, '..')
/** A fault can make a test wait without an end. Its file then fails after this time. */
const TAP_TIMEOUT = '180'
const { env } = process
const environment = { TAP_TIMEOUT, ...env }

/** Copies what git knows, and new files, beside a link to the packages. */
function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), 'planted-'))
  const names = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root })
  for (const name of names.toString().split('\0').filter(Boolean)) {
    mkdirSync(dirname(join(copy, name)), { recursive: true })
    cpSync(join(root, name), join(copy, name), { force: true })
  }
  for (const folder of PACKAGES) {
    const packages = join(root, folder, 'node_modules')
    if (existsSync(packages)) symlinkSync(packages, join(copy, folder, 'node_modules'))
  }
  return copy
}

/** Returns the text of the file with the fault. @throws Error if the fault does not apply */
function plantedText({ file, search, replace }: Plant): string {
  const text = readFileSync(join(root, file), 'utf8')
  const found = text.split(search).length - 1
  if (found !== 1) throw new Error(`its text is ${found} times in ${file}`)
  return text.replace(search, () => replace)
}

/** Returns the command that finds a fault. */
function commandOf({ command }: PlantList, plant: Plant): string[] {
  const given = plant.command ?? command
  if (given !== undefined) return given
  const files = values.all ? [] : (plant.tests ?? [])
  return ['node', '--disable-warning=ExperimentalWarning', 'test/run.ts', ...files]
}

/** @returns what the command says of the fault; undefined if it does not find it. @throws Error if it fails otherwise */
function find(copy: string, list: PlantList, plant: Plant): string | undefined {
  const planted = join(copy, plant.file)
  writeFileSync(planted, plantedText(plant))
  const [program = '', ...options] = commandOf(list, plant)
  // The same Node.js, whatever is first in PATH.
  const run = program === 'node' ? process.execPath : program
  const env = { ...environment, ...list.environment }
  const { status, stdout, stderr } = spawnSync(run, options, {
    cwd: copy,
    encoding: 'utf8',
    env,
    maxBuffer: 2 ** 30,
  })
  cpSync(join(root, plant.file), planted)
  if (status === 0) return undefined
  const output = `${stdout}\n${stderr}`
  const shows = list.shows ?? FAILED_FILE
  if (output.search(shows) < 0) throw new Error(`no check has failed\n${lastLines(output)}`)
  if (list.shows !== undefined) return lastLines(output)
  return [...output.matchAll(FAILED_FILE)].map(([, file]) => file).join(', ')
}

/** Shortens the lines, and keeps the last ones. */
function lastLines(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  return lines
    .slice(-3)
    .map((line) => `    ${line.slice(0, 160)}`)
    .join('\n')
}

const copy = copyCheckout()
const table: string[] = []
let failed = 0

function plantAll(kind: string, list: PlantList): void {
  for (const plant of list.plants.filter(({ name }) => name.includes(values.only))) {
    const startedAt = Date.now()
    let found: string | undefined
    try {
      found = find(copy, list, plant)
    } catch (error) {
      console.log(`${plant.name}: ${(error as Error).message}`)
    }
    if (found === undefined) failed += 1
    const seconds = ((Date.now() - startedAt) / 1_000).toFixed(0)
    console.log(`${found === undefined ? 'NOT FOUND' : 'found'}: ${plant.name} (${seconds} s)`)
    if (found !== undefined) console.log(found)
    const tests = (list.command === undefined && found) || (found && 'the command') || 'NOT FOUND'
    table.push(`| ${plant.name} | ${kind} | ${tests} | ${seconds} |`)
  }
}

try {
  for (const file of positionals)
    plantAll(basename(file, '.ts'), await import(pathToFileURL(resolve(file)).href))
} finally {
  rmSync(copy, { recursive: true })
  // Python keeps its compiled files by the path of their source.
  rmSync(join(root, 'node_modules/.cache/python', copy), { recursive: true, force: true })
}
console.log(['| Fault | Kind | Found by | Seconds |', '|---|---|---|---|', ...table].join('\n'))
console.log(failed === 0 ? 'All faults are found.' : `${failed} faults are not found.`)
process.exitCode = failed === 0 ? 0 : 1
