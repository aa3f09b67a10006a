import { readFile } from 'node:fs/promises'

/** An example of a README: a program, and what it prints. */
export interface Example {
  /** Name of its file, from its first line. */
  file: string
  source: string
  output: string
}

const EXAMPLE =
  /^```\w+\n(?<source>(?:\/\/|#) (?<file>[\w.-]+)\n(?:(?!```).*\n)*)```\n\nIt prints:\n\n```text\n(?<output>(?:(?!```).*\n)*)```/gm

/** Reads the examples of the README of a client. Their service is at `url`. */
export async function readmeExamples(
  language: 'typescript' | 'python',
  url: string,
): Promise<Example[]> {
  const path = `${import.meta.dirname}/../../clients/${language}/README.md`
  const examples = [...(await readFile(path, 'utf8')).matchAll(EXAMPLE)]
  return examples.map(({ groups: { file = '', source = '', output = '' } = {} }) => {
    return { file, source: source.replaceAll('http://127.0.0.1:3000', url), output }
  })
}
