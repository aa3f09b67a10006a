import { readFile } from 'node:fs/promises'

const operations = new URL('../../../docs/operations.md', import.meta.url)

/** Reads the code blocks of a section of docs/operations.md. */
export async function codeBlocks(section: string): Promise<string[]> {
  const text = await readFile(operations, 'utf8')
  const [, content] = text.split(new RegExp(`^##+ ${section}$`, 'm'))
  if (content === undefined) throw new Error(`docs/operations.md has no section “${section}”`)
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
  document = 'docs/operations.md',
): string {
  return Object.entries(values).reduce((filled, [placeholder, value]) => {
    if (!filled.includes(placeholder)) throw new Error(`${document} lacks “${placeholder}”`)
    return filled.replaceAll(placeholder, () => value)
  }, text)
}

/** Returns a command after checking that docs/operations.md has it, within a sentence. */
export async function inlineCommand(command: string): Promise<string> {
  const text = await readFile(operations, 'utf8')
  if (text.includes(`\`${command}\``)) return command
  throw new Error(`docs/operations.md lacks “${command}”`)
}
