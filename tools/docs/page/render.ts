/** Renders the page /docs from the OpenAPI document, for `npm run docs:renew`. */
import { readFile } from 'node:fs/promises'
import type { TSchema } from '@sinclair/typebox'
import { parseExactly } from '../../../src/http/openapi/examples.ts'
import { breakable, heading, markdown } from './markdown.ts'
import { lastPart, type PageDocument, renderOperations, typeOf } from './operations.ts'

/** The committed page, which the service serves. */
export const PAGE = new URL('../../../src/http/docs-page/index.html', import.meta.url)

const read = (name: string) => readFile(new URL(name, import.meta.url), 'utf8')

/** @param json the OpenAPI document of a service without settings of its own */
export async function renderPage(json: string): Promise<string> {
  const document = parseExactly(json) as PageDocument
  const { title, version, description } = document.info
  const firstSection = description.indexOf('\n## ')
  const content = [
    markdown.parse(description.slice(0, firstSection)),
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
    version,
    content: content
      .replaceAll('<table>', '<div class="scroll" tabindex="0"><table>')
      .replaceAll('</table>', '</table></div>')
      .replace(/<table>.*?<\/table>/gs, breakNames),
    navigation: navigation(content),
  }
  return (await read('template.html')).replace(/\{(\w+)\}/g, (_, name) => parts[name] ?? '')
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
    return `${heading(3, name, name)}${markdown.parse(description ?? '')}${table}`
  })
  return `${heading(2, 'fields', 'Fields')}${sections.join('\n')}`
}

function nameOf({ $ref, anyOf, items }: TSchema): string | undefined {
  if ($ref !== undefined) return lastPart($ref)
  const other = anyOf?.[0] ?? items
  return other && nameOf(other)
}
