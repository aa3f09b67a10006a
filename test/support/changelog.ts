import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The section of a version in CHANGELOG.md, or a part of one with its heading. */
export class Changelog {
  readonly text: string

  private constructor(text: string) {
    this.text = text
  }

  static async of(version: string): Promise<Changelog> {
    const text = await readFile(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8')
    return new Changelog(text).#section(`## [${version}]`, /^## /m)
  }

  part(heading: string): Changelog {
    return this.#section(`### ${heading}`, /^### /m)
  }

  #section(heading: string, next: RegExp): Changelog {
    const [, after, other] = this.text.split(`\n${heading}`)
    if (after === undefined || other !== undefined)
      throw new Error(`CHANGELOG.md has not exactly one “${heading}”`)
    return new Changelog(after.split(next)[0] ?? '')
  }

  /** Commands of the code blocks. */
  get commands(): string[] {
    const blocks = [...this.text.matchAll(/^```sh\n(.*?)^```$/gms)]
    return blocks.flatMap(([, block = '']) => block.trim().split('\n'))
  }

  /** Rows of the tables, without their headings. */
  get rows(): { code: string[]; instead: string }[] {
    const lines = this.text.split('\n').filter((line) => line.startsWith('| '))
    return lines.slice(1).map((line) => {
      const [, what = '', instead = ''] = line.split(' | ').join('|').split('|')
      const code = [...what.matchAll(/`([^`]+)`/g)].map(([, words = '']) => words)
      return { code, instead: instead.trim() }
    })
  }
}
