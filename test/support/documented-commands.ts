import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'

/** The pages for operators, in one text. */
const pages = globSync(`${import.meta.dirname}/../../docs/*.md`)
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n## \n')

/**
 * Returns the code blocks of a section of a page in docs. No other section may have its heading.
 * @param mark of the heading; `# ` is the title of a page
 */
export function codeBlocks(section: string, mark = '##+ '): string[] {
  const [, content, other] = pages.split(new RegExp(`^${mark}${section}$`, 'm'))
  if (content === undefined || other !== undefined)
    throw new Error(`not exactly one section “${section}” in docs`)
  const [own = ''] = content.split(/^##+ /m)
  return [...own.matchAll(/^```\w*\n(.*?)^```$/gms)].map(([, block = '']) => block)
}

/**
 * Replaces the placeholders of a documented text.
 * @param values by placeholder
 * @throws Error if the text lacks a placeholder
 */
export function fillIn(
  text: string,
  values: Record<string, string>,
  document = 'the page',
): string {
  return Object.entries(values).reduce((filled, [placeholder, value]) => {
    if (!filled.includes(placeholder)) throw new Error(`${document} lacks “${placeholder}”`)
    return filled.replaceAll(placeholder, () => value)
  }, text)
}

/** Returns a command after checking that a page in docs has it, within a sentence. */
export function inlineCommand(command: string): string {
  if (pages.includes(`\`${command}\``)) return command
  throw new Error(`no page in docs has “${command}”`)
}

/** A command of a `sh` block, with all its lines. */
export interface DocumentedCommand {
  page: string
  section: string
  /** Index of its block in codeBlocks(section). */
  block: number
  text: string
}

/** Returns the commands of all `sh` blocks of a page, in their order. */
export function commandsOf(page: string): DocumentedCommand[] {
  const commands: DocumentedCommand[] = []
  let section = ''
  let block = -1
  const parts = readFileSync(page, 'utf8').matchAll(
    /^#+ (?<heading>[^\n]*)$|^ *```(?<language>\w*)\n(?<content>.*?)^ *```$/gms,
  )
  for (const { groups = {} } of parts) {
    const { heading, language, content = '' } = groups
    if (heading !== undefined) {
      section = heading
      block = -1
      continue
    }
    block += 1
    if (language !== 'sh') continue
    for (const text of splitCommands(content)) commands.push({ page, section, block, text })
  }
  return commands
}

/** Splits a script into commands. One with a here-document, a loop or a text of several lines has several lines. */
function splitCommands(script: string): string[] {
  if (!bashAccepts(script)) throw new Error(`bash cannot run: ${script}`)
  const commands: string[] = []
  let command = ''
  for (const line of script.split('\n')) {
    if (command === '' && line.trim() === '') continue
    command += `${line}\n`
    if (!isComplete(command)) continue
    commands.push(command.trim())
    command = ''
  }
  if (command.trim() !== '') throw new Error(`not a whole command: ${command}`)
  return commands
}

/** What a command of several lines has: a quote, a group, a here-document, a loop, or an operator at the end of a line. */
const MAY_CONTINUE = /['"({]|<<|\b(if|for|while|until|case)\b|[&|\\]\s*$/m

function isComplete(text: string): boolean {
  if (text.endsWith('\\\n')) return false
  // A process of bash for each line would take 10 s in all.
  if (!MAY_CONTINUE.test(text)) return true
  return bashAccepts(text)
}

/** True if bash could run the text. Of a here-document without its end, bash only warns. */
function bashAccepts(text: string): boolean {
  const { status, stderr } = spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' })
  return status === 0 && stderr === ''
}

/** Blocks that tests run as a whole: the name of a test by `section block`. */
export function blocksOfTests(): Map<string, string> {
  const found = new Map<string, string>()
  for (const file of globSync('test/**/*.test.ts', {
    exclude: (path) => path.endsWith('node_modules'),
  })) {
    const source = readFileSync(file, 'utf8')
    // const [first = '', , third = ''] = codeBlocks('Section')
    for (const [, names = '', , section] of source.matchAll(
      /const \[([^\]]*)\] = codeBlocks\((['"])(.*?)\2\)/g,
    ))
      for (const [index, name] of names.split(',').entries())
        if (name.trim() !== '') found.set(`${section} ${index}`, file)
    // const blocks = codeBlocks('Section'), then: const [first = '', …] = blocks
    for (const [, , section] of source.matchAll(/const blocks = codeBlocks\((['"])(.*?)\1\)/g)) {
      const [, names = ''] = /const \[([^\]]*)\] = blocks/.exec(source) ?? []
      for (const [index, name] of names.split(',').entries())
        if (name.trim() !== '') found.set(`${section} ${index}`, file)
    }
  }
  return found
}
