/** Renders the page /docs from the OpenAPI document, for `npm run docs:renew`. */
import { readFile } from 'node:fs/promises'
import type { TSchema } from '@sinclair/typebox'
import { PLACEHOLDER } from '../../../src/http/openapi/code-samples.js'
import { parseExactly } from '../../../src/http/openapi/examples.ts'
import { MEDIA_TYPES } from '../../../src/schemas/list.ts'
import { breakable, codeBlock, escapeHtml, heading, markdown } from './markdown.ts'
import {
  lastPart,
  type PageDocument,
  type Response,
  renderOperations,
  typeOf,
} from './operations.ts'

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
    markdown.parse(description.slice(about.length, firstSection)),
    // page.js shows it in a service that has demo tokens.
    `<aside id="demo" hidden>${markdown.parse(await read('demo.md'))}</aside>`,
    heading(2, 'operations', 'Operations'),
    '<noscript><p>Requests, search and copy buttons need JavaScript.</p></noscript>',
    renderOperations(document),
    markdown.parse(description.slice(firstSection)),
    fields(document),
  ].join('\n')
  const parts: Record<string, string> = {
    title,
    about: escapeHtml(about),
    version,
    content: content
      .replaceAll('<table>', '<div class="scroll"><table>')
      .replaceAll('</table>', '</table></div>')
      .replace(/<table>.*?<\/table>/gs, breakNames),
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
    codeBlock(curl, 'The newest portfolio transaction of a connection'),
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

/** Describes the fields of every schema. Those of the exact media type have the same names. */
function fields({ components: { schemas } }: PageDocument): string {
  const shown = Object.entries(schemas).filter(([name]) => !name.startsWith('Exact'))
  const sections = shown.map(([name, { description, properties }]) => {
    const rows = Object.entries<TSchema>(properties ?? {}).map(([field, schema]) => {
      const referenced = schemas[nameOf(schema) ?? '']
      const [text = ''] = (schema.description ?? referenced?.description ?? '').split('\n\n')
      const cells = [`<code>${field}</code>`, typeOf(schema), markdown.parseInline(text)]
      return `<tr id="${name}.${field}">${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`
    })
    const head = '<thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead>'
    const table = rows.length > 0 ? `<table>${head}<tbody>${rows.join('\n')}</tbody></table>` : ''
    const codes = Object.values<TSchema>(properties ?? {}).map(codeTable)
    return `${heading(3, name, name)}${markdown.parse(description ?? '')}${table}${codes.join('')}`
  })
  return `${heading(2, 'fields', 'Fields')}${sections.join('\n')}`
}

/** Describes the values of a field, each with an anchor. The codes of errors have sections of their own. */
function codeTable({ enum: values = [], 'x-enum-descriptions': meanings = [] }: TSchema): string {
  if (meanings.length === 0 || values.includes('internal_error')) return ''
  const rows = values.map((value: string, index: number) => {
    const meaning = markdown.parseInline(meanings[index])
    return `<tr id="${value}"><td><code>${value}</code></td><td>${meaning}</td></tr>`
  })
  const head = '<thead><tr><th>Value</th><th>Meaning</th></tr></thead>'
  return `<table>${head}<tbody>${rows.join('\n')}</tbody></table>`
}

function nameOf({ $ref, anyOf, items }: TSchema): string | undefined {
  if ($ref !== undefined) return lastPart($ref)
  const other = anyOf?.[0] ?? items
  return other && nameOf(other)
}
