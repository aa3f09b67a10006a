import type { TSchema } from '@sinclair/typebox'
import { Marked } from 'marked'

export interface PageDocument {
  info: { title: string; version: string; description: string }
  paths: Record<string, { get: Operation }>
  components: { schemas: Record<string, TSchema> }
}
interface Operation {
  operationId: string
  summary: string
  description: string
  tags: string[]
  parameters: { $ref: string }[]
}

const markdown = new Marked({
  renderer: {
    heading({ tokens, depth, text }) {
      return heading(depth, slug(text), this.parser.parseInline(tokens))
    },
  },
})

const slug = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replace(/\s/g, '-')

const heading = (depth: number, id: string, html: string) =>
  `<h${depth} id="${id}"><a href="#${id}">${html}</a></h${depth}>\n`

/** @param demo Markdown on the demo tokens; empty without them */
export function renderPage(document: PageDocument, template: string, demo: string): string {
  const { title, version, description } = document.info
  const firstSection = description.indexOf('\n## ')
  const content = [
    markdown.parse(description.slice(0, firstSection)),
    demo && `<aside>${markdown.parse(demo)}</aside>`,
    heading(2, 'operations', 'Operations'),
    '<noscript>Without JavaScript, <a href="openapi.json">openapi.json</a> has the operations.</noscript>',
    '<div id="swagger-ui"></div>',
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
    navigation: navigation(content, operationLinks(document)),
  }
  return template.replace(/\{(\w+)\}/g, (_, name) => parts[name] ?? '')
}

/** Lets lines break within the names in a table: after `_`, and before a capital. */
const breakNames = (table: string) =>
  table.replace(/>\w+(?=<)/g, (text) => text.replace(/_(?=\w)|[a-z](?=[A-Z])/g, '$&<wbr>'))

function navigation(content: string, operations: string): string {
  const links = [...content.matchAll(/<h([23]) id="[^"]+">(<a .*<\/a>)/g)].map(
    ([, depth, link]) => ({ depth, link: String(link) }),
  )
  const items = links.map(({ depth, link }, index) => {
    if (depth === '3')
      return `<li>${link}</li>${links[index + 1]?.depth === '3' ? '' : '</ul></li>'}`
    if (link.includes('#operations')) return `<li>${link}<ul>${operations}</ul></li>`
    return links[index + 1]?.depth === '3' ? `<li>${link}<ul>` : `<li>${link}</li>`
  })
  return `<ul>${items.join('\n')}</ul>`
}

function operationLinks({ paths }: PageDocument): string {
  const links = Object.entries(paths).map(([path, { get }]) => {
    const names = get.parameters.map(({ $ref }) => lastPart($ref))
    const words = [path, get.description, 'Parameters:', names.join(', ')].join(' ')
    const target = `#/${encodeURIComponent(String(get.tags[0]))}/${get.operationId}`
    return `<li><a href="${target}" data-text="${words}">${get.summary}</a></li>`
  })
  return links.join('\n')
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

const lastPart = (path: string) => path.slice(path.lastIndexOf('/') + 1)

function nameOf({ $ref, anyOf, items }: TSchema): string | undefined {
  if ($ref !== undefined) return lastPart($ref)
  const other = anyOf?.[0] ?? items
  return other && nameOf(other)
}

function typeOf({ $ref, type, format, anyOf, items }: TSchema): string {
  if ($ref !== undefined) return `<a href="#${lastPart($ref)}">${lastPart($ref)}</a>`
  if (anyOf) return anyOf.map(typeOf).join(' or ')
  if (items) return `list of ${typeOf(items)}`
  return [type ?? '']
    .flat()
    .map((name) => (name !== 'null' && format ? `${name} (${format})` : name))
    .join(' or ')
}
