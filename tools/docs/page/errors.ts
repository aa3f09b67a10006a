/** Examples of errors, and the operations that return them, for the sections of the errors. */
import { routeNotFoundExample } from '../../../src/http/openapi/examples.ts'
import { MEDIA_TYPES } from '../../../src/schemas/list.ts'
import { codeBlock, markdown } from './markdown.ts'
import type { PageDocument } from './page-document.ts'

/** Renders an error as the service sends it, and links to the operations that send it. */
export function errorParts(code: string, { paths }: PageDocument): string {
  const returning = Object.values(paths).flatMap(({ get }) => {
    const responses = Object.values(get.responses)
    const examples = responses.map(({ content }) => content?.[MEDIA_TYPES.json]?.examples?.[code])
    const example = examples.find((each) => each !== undefined)
    return example === undefined ? [] : [{ get, value: example.value }]
  })
  const links = returning.map(({ get }) => `[${get.summary}](#${get.operationId})`)
  const isOfAll = links.length === Object.keys(paths).length
  // Each operation has the same example.
  const [value = routeNotFoundExample(Object.keys(paths))] = returning.map((each) => each.value)
  const operations = isOfAll ? '' : markdown.parse(operationsText(links))
  return `${operations}${codeBlock(JSON.stringify(value, null, 2), 'Example response')}`
}

const operationsText = (links: string[]) =>
  links.length === 0 ? 'No operation: the path has none.' : `Operations: ${links.join(', ')}.`
