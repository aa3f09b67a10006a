/** Renders the page /docs from the OpenAPI document, for `npm run docs:renew`. */
import { readFile } from 'node:fs/promises'
import { PLACEHOLDER } from '../../../src/http/openapi/code-samples.js'
import { parseExactly } from '../../../src/http/openapi/examples.ts'
import { MEDIA_TYPES } from '../../../src/schemas/list.ts'
import { errorParts } from './errors.ts'
import { schemaSection, schemasOf, shownSchemas } from './fields.ts'
import { breakable, codeBlock, escapeHtml, heading, markdown } from './markdown.ts'
import { renderOperations } from './operations.ts'
import type { PageDocument, Response } from './page-document.ts'

/** The committed page, which the service serves. */
export const PAGE = new URL('../../../src/http/docs-page/index.html', import.meta.url)

const read = (name: string) => readFile(new URL(name, import.meta.url), 'utf8')

/** @param json the OpenAPI document of a service without settings of its own */
export async function renderPage(json: string): Promise<string> {
  const document = parseExactly(json) as PageDocument
  const { title, version, description } = document.info
  const [about = ''] = description.split('\n')
  const firstSection = description.indexOf('\n## ')
  const content = [
    markdown.parse(about),
    firstRequest(document),
    // page.js shows it in a service that has demo tokens.
    `<aside id="demo" hidden>${markdown.parse(await read('demo.md'))}</aside>`,
    markdown.parse(description.slice(about.length, firstSection)),
    heading(2, 'operations', 'Operations'),
    '<noscript><p>Requests, search and copy buttons need JavaScript.</p></noscript>',
    renderOperations(document),
    withExamples(markdown.parse(description.slice(firstSection)) as string, document),
    fields(document),
  ].join('\n')
  const parts: Record<string, string> = {
    title,
    about: escapeHtml(about.replaceAll('`', '')),
    version,
    content: content
      .replaceAll('<table>', '<div class="scroll"><table>')
      .replaceAll('</table>', '</table></div>')
      .replace(/<table>.*?<\/table>/gs, breakNames)
      .split(/(?=<h2 id=)/)
      .map((part, index) => (index === 0 ? part : section(part)))
      .join('\n'),
    navigation: navigation(content),
  }
  return (await read('template.html')).replace(/\{(\w+)\}/g, (_, name) => parts[name] ?? '')
}

/** Fields of the first response: the others are in the example of the operation. */
const SHOWN_FIELDS = 8

/** Renders the address of the API, and one request with its response. */
function firstRequest({ paths }: PageDocument): string {
  const [first] = Object.entries(paths)
  if (first === undefined) return ''
  const [path, { get }] = first
  const url = `${PLACEHOLDER}${path.replace('{token}', '$CONNECTION_TOKEN')}?limit=1`
  const curl = `curl --header "Authorization: Bearer $APP_TOKEN" \\\n  "${url}"`
  const base = PLACEHOLDER + path.slice(0, path.indexOf('/connections'))
  return [
    heading(2, 'first-request', 'First request'),
    // page.js shows the address of this service.
    `<p>Base URL: <code class="address">${base}</code></p>`,
    codeBlock(curl, 'The newest portfolio transaction of a connection', ' id="first-sample"'),
    codeBlock(firstResponse(get.responses[200] as Response), 'Response'),
  ].join('')
}

interface ExamplePage {
  items: Record<string, unknown>[]
}

/** The example of an operation with one item, of which it shows the first fields. */
function firstResponse({ content }: Response): string {
  const [example] = Object.values(content?.[MEDIA_TYPES.json]?.examples ?? {})
  if (example === undefined) return ''
  const { items, ...page } = example.value as ExamplePage
  const member = (entry: unknown[]) => entry.map((part) => JSON.stringify(part)).join(': ')
  const fields = Object.entries(items[0] ?? {}).slice(0, SHOWN_FIELDS)
  return [
    '{',
    '  "items": [',
    '    {',
    ...fields.map((field) => `      ${member(field)},`),
    '      …',
    '    }',
    '  ],',
    Object.entries({ ...page, limit: 1 })
      .map((field) => `  ${member(field)}`)
      .join(',\n'),
    '}',
  ].join('\n')
}

/** Adds to the section of each error its example, and the operations that return it. */
const withExamples = (html: string, document: PageDocument) =>
  html.replace(ERROR_SECTION, (section, code) => section + errorParts(code, document))

/** Heading and text of an error: its code has `_`, which no other heading has. */
const ERROR_SECTION = /<h3 id="([a-z]+(?:_[a-z]+)+)">.*?(?=<h[23] |$)/gs

/** Puts a heading of level 2 and its text into an element, and each heading of level 3 in it. Browsers lay out the visible ones. */
function section(html: string): string {
  const [text, ...parts] = html.split(/(?=<h3 id=)/)
  const inner = parts.map((part) => `<section>${part}</section>`)
  return `<section>${text}${inner.join('\n')}</section>`
}

const breakNames = (table: string) => table.replace(/>\w+(?=<)/g, breakable)

/** Lists the headings, and the operations, which have no link of their own. */
function navigation(content: string): string {
  const headings =
    /<h([23]) id="[^"]+">(<a .*<\/a>)|<details class="operation" id="(\w+)".*\n<summary><h3>(.*?)</g
  const links = [...content.matchAll(headings)].map(([, depth = '3', link, id, summary]) => ({
    depth,
    link: link ?? `<a href="#${id}">${summary}</a>`,
  }))
  const items = links.map(({ depth, link }, index) => {
    const isParent = links[index + 1]?.depth === '3'
    if (depth === '3') return `<li>${link}</li>${isParent ? '' : '</ul></li>'}`
    return isParent ? `<li>${link}<ul>` : `<li>${link}</li>`
  })
  return `<ul>${items.join('\n').replace(/>\w+(?=<)/g, breakable)}</ul>`
}

/** Describes the schemas of several operations. Those of one operation stand beside it. */
function fields(document: PageDocument): string {
  const { schemas } = document.components
  const operations = Object.values(document.paths).map(({ get }) => get)
  const own = operations.flatMap((operation) => schemasOf(operation, document))
  const links = own.map((name) => `[${name}](#${name})`).join(', ')
  const shared = shownSchemas(schemas).filter((name) => !own.includes(name))
  return [
    heading(2, 'fields', 'Fields'),
    markdown.parse(`The fields of the rows are beside their operations: ${links}.`),
    ...shared.map((name) => schemaSection(name, schemas, 3)),
  ].join('\n')
}
