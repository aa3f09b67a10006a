import { readFile } from 'node:fs/promises'

/** An example of the documents of a client: a program, and what it prints. */
export interface Example {
  /** Name of its file, from its first line. */
  file: string
  source: string
  output: string
}

const EXAMPLE =
  /^```(?<fence>\w+)\n(?<source>(?:\/\/|#) (?<file>[\w.-]+)\n(?:(?!```).*\n)*)```\n\nIt prints:\n\n```text\n(?<output>(?:(?!```).*\n)*)```/gm

const FENCES = { typescript: 'ts', python: 'python' }

/** Reads the examples of the README of a client, then those of docs/clients.md. Their service is at `url`. */
export async function readmeExamples(
  language: 'typescript' | 'python',
  url: string,
): Promise<Example[]> {
  const paths = [`clients/${language}/README.md`, 'docs/clients.md']
  const texts = await Promise.all(
    paths.map((path) => readFile(`${import.meta.dirname}/../../${path}`, 'utf8')),
  )
  return [...texts.join('\n').matchAll(EXAMPLE)]
    .filter(({ groups }) => groups?.fence === FENCES[language])
    .map(({ groups: { file = '', source = '', output = '' } = {} }) => {
      return { file, source: source.replaceAll('http://127.0.0.1:3000', url), output }
    })
}
