import { readdir, readFile } from 'node:fs/promises'
import { DOCUMENT } from './committed.ts'

type Contract = Record<string, unknown>

/** Documents of the releases. `npm run docs:release` writes the one of this version. */
export const RELEASES = new URL('../../docs/reference/releases/', import.meta.url)

/** Texts, which may change in every release. */
const TEXTS = /^(?:title|summary|description|examples?|tags|x-.*)$/

/** Parses a document, without texts. A schema of a field may have the name of a text. */
export function parseContract(text: string): Contract {
  const { security, paths, components } = JSON.parse(text, (key, value) => {
    const isText = typeof value === 'string' || Array.isArray(value) || /^x-|^examples/.test(key)
    return TEXTS.test(key) && isText ? undefined : value
  }) as Contract
  return { security, paths, components }
}

/** Reads the committed document. */
export async function committedContract(): Promise<Contract> {
  return parseContract(await readFile(DOCUMENT, 'utf8'))
}

/** Reads the document of the last release: its version, and the document. */
export async function lastRelease(): Promise<{ version: string; contract: Contract }> {
  const byVersion = new Intl.Collator('en', { numeric: true }).compare
  const [version = ''] = (await readdir(RELEASES))
    .map((name) => name.slice('openapi-'.length, -'.json'.length))
    .sort(byVersion)
    .reverse()
  const text = await readFile(new URL(`openapi-${version}.json`, RELEASES), 'utf8')
  return { version, contract: parseContract(text) }
}
