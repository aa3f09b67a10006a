import { readFile } from 'node:fs/promises'

const operations = new URL('../../../docs/operations.md', import.meta.url)

/** The blocks of code in a section of docs/operations.md, in order, as an operator copies them. */
export async function blocksOf(section: string): Promise<string[]> {
  const text = await readFile(operations, 'utf8')
  const [, content] = text.split(new RegExp(`^##+ ${section}$`, 'm'))
  if (content === undefined) throw new Error(`docs/operations.md has no section “${section}”`)
  const [own = ''] = content.split(/^##+ /m)
  return [...own.matchAll(/^```\w*\n(.*?)^```$/gms)].map(([, block = '']) => block)
}

/**
 * What stands for something of the operator's own is replaced; all else stays as it is documented.
 * @throws Error where a text that is to be replaced is not there, so that none can be overlooked
 */
export function withOwn(
  block: string,
  own: Record<string, string>,
  document = 'docs/operations.md',
): string {
  return Object.entries(own).reduce((text, [written, meant]) => {
    if (!text.includes(written)) throw new Error(`${document} does not say “${written}”`)
    return text.replaceAll(written, () => meant)
  }, block)
}

/** A command that stands within a sentence of docs/operations.md. */
export async function inSentence(command: string): Promise<string> {
  const text = await readFile(operations, 'utf8')
  if (text.includes(`\`${command}\``)) return command
  throw new Error(`docs/operations.md does not say “${command}”`)
}
