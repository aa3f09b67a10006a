import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { marked, type Token } from 'marked'
import type { Test } from 'tap'
import { parseExact } from './exact-json.ts'
import { until } from './until.ts'
import { within } from './within.ts'

/** How a test follows a tutorial. Nothing else of the page is left out or changed. */
export interface Journey {
  /** Path of the Markdown. */
  page: string
  /** Empty folder in which the reader begins. */
  folder: string
  /** Variables of each new terminal. */
  environment: Record<string, string>
  /** Language of the reader, if the page has parts that begin with “In TypeScript” or “In Python”. */
  language?: string
  /** Lines that a test cannot run, each with the line that runs instead. The test says why. */
  instead: Record<string, string>
  /** Replaces the placeholders and addresses of the page. Called for each program and each line of commands. */
  fillIn?: (text: string, printed: string) => string
  /** Replaces what differs from the page in the output of a block. */
  asDocumented?: (printed: string) => string
}

/** What the blocks of a section have printed. */
export type Printed = Map<string, string>

/** Longest time of a block. `npm install` takes the longest. */
const LIMIT_MS = 300_000

/**
 * Follows a tutorial as a reader does. It saves each program under the name in “save this as”, runs each `sh` block in the
 * terminal that the text names, and compares the output with the `text` or `json` block after it.
 * @returns the output by title of its section
 * @throws Error if a command fails, or prints something else than the page says
 */
export async function followTutorial(t: Test, journey: Journey): Promise<Printed> {
  const steps = readSteps(await readFile(journey.page, 'utf8'), journey.language)
  const commands = steps.filter(({ kind }) => kind === 'run').map(({ text }) => text)
  const lines = commands.join('').split('\n')
  for (const line of Object.keys(journey.instead))
    if (!lines.includes(line)) throw new Error(`${journey.page} has no line “${line}”`)

  const printed: Printed = new Map()
  let terminal = new Terminal(t, journey, 1)
  let output = ''
  for (const [index, step] of steps.entries()) {
    const place = `${basename(journey.page)}, ${step.section}`
    const fillIn = (text: string) =>
      journey.fillIn?.(text, [...printed.values()].join('\n')) ?? text
    const asDocumented = (text: string) => journey.asDocumented?.(text) ?? text
    if (step.newTerminal) terminal = new Terminal(t, journey, terminal.number + 1)
    if (step.kind === 'save') await terminal.save(step.file, fillIn(step.text))
    if (step.kind === 'run') {
      const next = steps[index + 1]
      const text = step.text
        .split('\n')
        .map((line) => journey.instead[line] ?? fillIn(line))
        .join('\n')
      output = await terminal.run(place, text, {
        exitCode: next?.kind === 'compare' ? next.exitCode : 0,
        until: next?.leftRunning ? (printed) => isExpected(next, asDocumented(printed)) : undefined,
      })
      output = asDocumented(output)
      printed.set(step.section, `${printed.get(step.section) ?? ''}${output}`)
    }
    if (step.kind === 'compare' && step.language === 'json')
      t.hasStrict(parseExact(output), parseExact(step.text), place)
    if (step.kind === 'compare' && step.language === 'text' && !isExpected(step, output))
      throw new Error(`${place}: printed\n${output}\ninstead of\n${step.text}`)
  }
  return printed
}

interface Step {
  kind: 'run' | 'save' | 'compare'
  section: string
  language: string
  text: string
  file: string
  /** The paragraph before says that the reader opens another terminal. */
  newTerminal: boolean
  /** The paragraph after says that the command goes on. */
  leftRunning: boolean
  /** Of the commands before, as the paragraph before says. */
  exitCode: number
}

/** Reads the code blocks of a page, without those for readers of another language. */
function readSteps(markdown: string, language?: string): Step[] {
  const steps: Step[] = []
  const tokens = marked.lexer(markdown).filter(({ type }) => type !== 'space')
  let section = ''
  let part: string | undefined
  let paragraph = ''
  let newTerminal = false
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'heading') {
      section = token.text
      part = undefined
    }
    if (token.type === 'list' && token.raw.includes('```'))
      throw new Error(`${section}: a block in a list is not run`)
    if (token.type === 'paragraph') {
      paragraph = token.text.replaceAll('\n', ' ')
      newTerminal ||= /\bOpen a (second|third) terminal\b/.test(paragraph)
      part = /\bIn (TypeScript|Python)\b((?!\. ).)*:$/.exec(paragraph)?.[1] ?? part
      if (/\bBoth print:$/.test(paragraph)) part = undefined
    }
    if (token.type !== 'code' || (part !== undefined && part !== language)) continue
    const step = readStep(token, paragraph)
    steps.push({ ...step, section, newTerminal, leftRunning: isLeftRunning(tokens[index + 1]) })
    newTerminal = false
    paragraph = ''
  }
  return steps
}

type Found = Omit<Step, 'section' | 'newTerminal' | 'leftRunning'>

function readStep(
  { lang: language = '', text: block = '' }: Token & { lang?: string; text?: string },
  paragraph: string,
): Found {
  const text = `${block}\n`
  const [, file = ''] = /\bsave this as `([^`]+)`/i.exec(paragraph) ?? []
  const exitCode = Number(/\bexit code (\d)/.exec(paragraph)?.[1] ?? 0)
  const step = { language, text, file, exitCode }
  if (file !== '') return { ...step, kind: 'save' }
  if (language === 'sh') return { ...step, kind: 'run' }
  if (/\bprints?\b[^.]*:$/.test(paragraph) && ['text', 'json'].includes(language))
    return { ...step, kind: 'compare' }
  throw new Error(
    `a block of ${language} after “${paragraph}” is neither run, nor saved, nor compared`,
  )
}

const isLeftRunning = (after?: Token) =>
  after?.type === 'paragraph' && after.raw.startsWith('Leave it running')

/** Compares an output with the documented one. `…` is any text of a line, and alone any lines. */
function isExpected({ text }: Step, printed: string): boolean {
  const lines = text.trim().split('\n')
  const patterns = lines.map((line) =>
    line === '…' ? '(.*\n)*' : `${line.split('…').map(escaped).join('.*')}\n`,
  )
  return new RegExp(`^${patterns.join('')}$`).test(`${printed.trim()}\n`)
}

const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

interface Run {
  exitCode: number
  /** Output after which the command goes on in the background. */
  until?: ((printed: string) => boolean) | undefined
}

/** What a command of npm or a test sets, and a terminal of a reader does not have. */
const NOT_IN_A_TERMINAL = /^(npm_|TAP|TEST_|NODE_OPTIONS$|DATABASE_URL$)/

const environment = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !NOT_IN_A_TERMINAL.test(name)),
  ),
  // The Node.js of this project, because that of the machine may be too old for the programs of a page.
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
}

/** Keeps the folder, variables and umask of one block for the next one, as a shell does. */
class Terminal {
  readonly number: number
  readonly #t: Test
  readonly #journey: Journey
  readonly #state: string
  #busyWith = ''

  constructor(t: Test, journey: Journey, number: number) {
    this.number = number
    this.#t = t
    this.#journey = journey
    this.#state = `${journey.folder}.terminal-${number}`
  }

  async save(file: string, text: string): Promise<void> {
    const [, folder = this.#journey.folder] =
      /^cd (.*)$/m.exec(await readFile(this.#state, 'utf8').catch(() => '')) ?? []
    await writeFile(join(folder, file), text)
  }

  async run(place: string, commands: string, { exitCode, until: holds }: Run): Promise<string> {
    if (this.#busyWith) throw new Error(`${place}: this terminal still runs ${this.#busyWith}`)
    const script = `
      exec 2>&1
      [ ! -e "$TERMINAL" ] || . "$TERMINAL" 2> /dev/null
      keep() {
        { declare -p | grep --invert-match '^declare -[a-zA-Z]*r'; umask -p; echo "cd $PWD"; } > "$TERMINAL"
      }
      trap keep EXIT
      set -e
      ${commands}`
    const child = spawn('bash', ['-c', script], {
      cwd: this.#journey.folder,
      env: { ...environment, TERMINAL: this.#state, ...this.#journey.environment },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    })
    const ended = endOf(this.#t, child)
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      output += part
    })
    const isDone = () => child.exitCode !== null || child.signalCode !== null
    if (holds !== undefined) this.#busyWith = commands
    const done =
      holds === undefined ? ended : until(place, () => isDone() || holds(output), LIMIT_MS)
    await within(place, done, LIMIT_MS).catch((error) => {
      throw new Error(`${error.message}\n${output}`)
    })
    if (isDone() && (holds !== undefined || child.exitCode !== exitCode))
      throw new Error(`${place}: ended with ${child.exitCode ?? child.signalCode}:\n${output}`)
    return output.trim()
  }
}

/** Ends a command with the test, as Ctrl-C does, and waits until it has. */
async function endOf(t: Test, child: ChildProcess): Promise<void> {
  const closed = once(child, 'close')
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
    process.kill(-child.pid, 'SIGINT')
    await within('the end of a command after Ctrl-C', closed)
  })
  await closed
}
