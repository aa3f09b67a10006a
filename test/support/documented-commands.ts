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
