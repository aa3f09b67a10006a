/**
 * Plants known faults in a copy of this checkout, one at a time, and runs a command that must find each of them:
 *
 *     npm run plant -- test/simulation/planted.ts
 *     npm run plant -- test/simulation/planted.ts --only 'lost plan'
 *
 * The module of the list exports `command`, what its output `shows` of a failed check, and `plants`: each has a name, a file,
 * the text to search for and its replacement, and may have a command of its own. It ends with 1 if a fault is not found, if
 * the command fails otherwise, or if a fault no longer applies: its text must be in the file once.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
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
}

interface PlantList {
  /** Program and arguments. It runs in the copy, and fails if it has found the fault. */
  command: string[]
  /** What the output of the command has if a check has failed. */
  shows: RegExp
  plants: Plant[]
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string', default: '' } },
})
const root = resolve(import.meta.dirname, '..')
const [list = ''] = positionals
const { command, shows, plants }: PlantList = await import(pathToFileURL(resolve(list)).href)

/** Copies what git knows, and new files, beside a link to the packages. */
function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), 'planted-'))
  const names = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root })
  for (const name of names.toString().split('\0').filter(Boolean)) {
    mkdirSync(dirname(join(copy, name)), { recursive: true })
    cpSync(join(root, name), join(copy, name), { force: true })
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

/** Returns the text of the file with the fault. @throws Error if the fault does not apply */
function plantedText({ file, search, replace }: Plant): string {
  const text = readFileSync(join(root, file), 'utf8')
  const found = text.split(search).length - 1
  if (found !== 1) throw new Error(`its text is ${found} times in ${file}`)
  return text.replace(search, () => replace)
}

/** @returns what the command says of the fault; undefined if it does not find it. @throws Error if it fails otherwise */
function find(copy: string, plant: Plant): string | undefined {
  const planted = join(copy, plant.file)
  writeFileSync(planted, plantedText(plant))
  const [program = '', ...options] = plant.command ?? command
  // The same Node.js, whatever is first in PATH.
  const run = program === 'node' ? process.execPath : program
  const { status, stdout, stderr } = spawnSync(run, options, { cwd: copy, encoding: 'utf8' })
  cpSync(join(root, plant.file), planted)
  if (status === 0) return undefined
  const output = `${stdout}\n${stderr}`
  if (!shows.test(output)) throw new Error(`no check has failed\n${lastLines(output)}`)
  return lastLines(output)
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
let failed = 0
try {
  for (const plant of plants.filter(({ name }) => name.includes(values.only))) {
    const startedAt = Date.now()
    const seconds = () => `${((Date.now() - startedAt) / 1_000).toFixed(0)} s`
    try {
      const found = find(copy, plant)
      if (found === undefined) failed += 1
      console.log(`${found ? 'found' : 'NOT FOUND'}: ${plant.name} (${seconds()})`)
      if (found) console.log(found)
    } catch (error) {
      failed += 1
      console.log(`NOT FOUND: ${plant.name}: ${(error as Error).message}`)
    }
  }
} finally {
  rmSync(copy, { recursive: true })
}
console.log(failed === 0 ? 'All faults are found.' : `${failed} faults are not found.`)
process.exitCode = failed === 0 ? 0 : 1
