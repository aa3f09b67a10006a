/** Renders /docs.md, the page /docs for programs that read Markdown, for `npm run docs:renew`. */
import type { TSchema } from '@sinclair/typebox'
import { lastPart } from './fields.ts'
import type { PageDocument } from './page-document.ts'

/** The committed file, which the service serves. */
export const PLAIN_PAGE = new URL('../../../src/http/docs-page/docs.md', import.meta.url)

/** Sections that a program which calls the API does not need. */
const LEFT_OUT = ['Generated clients', 'Clients', 'Compatibility', 'Changelog']

/** Samples that repeat one in another language. */
const REPEATED_SAMPLE = /^(?:Java 17|Node\.js 20) or later.*?\n```\n\n/gms

/** Section of an error: its code, status, cause and remedy. */
const ERROR_SECTION =
  /^### (`\w+`)\n\n\*\*(\d+) .*\n\n\*\*Cause:\*\* (.*)\n\n\*\*Remedy:\*\* (.*)\n\n?/gm

/** @param json the OpenAPI document of a service without settings of its own */
export function renderPlainPage(json: string): string {
  const document = JSON.parse(json) as PageDocument
  const { title, version, description } = document.info
  const sections = description
    .replace(REPEATED_SAMPLE, '')
    .replace(ERROR_SECTION, '- $1 ($2): $3 $4\n')
    .split(/^(?=## )/m)
  const [introduction = '', ...others] = sections.filter(
    (section) => !LEFT_OUT.some((name) => section.startsWith(`## ${name}\n`)),
  )
  const parts = [
    `# ${title} ${version}\n`,
    introduction,
    operations(document),
    fields(document),
    ...others,
  ]
  const text = parts.map((part) => part.trim()).join('\n\n')
  return `${withoutPageLinks(text)}\n`
}

/** Links within the page become their texts: the whole file is read at once. */
const withoutPageLinks = (text: string) => text.replaceAll(/\[([^\]]+)\]\(#[^)]*\)/g, '$1')

/** A request that runs as it is with the tokens in variables. */
const FIRST_REQUEST = `\`\`\`sh
curl -H "Authorization: Bearer $APP_TOKEN" "https://HOST/api/v1/queries/connections/$CONNECTION_TOKEN/portfolios/transactions?limit=2"
\`\`\`
`

function operations({ paths }: PageDocument): string {
  const all = Object.entries(paths)
  const lines = all.map(([path, { get }]) => `- \`GET ${path}\`: ${get.description.split('\n')[0]}`)
  const [, { get } = { get: undefined }] = all[0] ?? []
  const parameters = (get?.parameters ?? [])
    .filter(({ in: place }) => place !== 'path')
    .map(({ name, in: place, description }) => `- \`${name}\` (${place}): ${description}`)
  return [
    '## Operations\n',
    FIRST_REQUEST,
    ...lines,
    '\nThe transaction lists have these parameters; the transfer orders have no query parameters:\n',
    ...parameters,
  ].join('\n')
}

function fields({ components: { schemas } }: PageDocument): string {
  const shown = Object.entries(schemas).filter(([name]) => !name.startsWith('Exact'))
  const lines = shown.flatMap(([name, { properties, enum: values }]) => {
    if (properties !== undefined) {
      const all = Object.entries<TSchema>(properties).map(
        ([field, schema]) => `${field} ${typeOf(schema)}`,
      )
      return [`- ${name}: ${all.join(', ')}`]
    }
    return values ? [`- ${name}: ${typeList(schemas[name] as TSchema)}`] : []
  })
  return `## Fields\n\nA field with ? may be null. A type with (+) adds titles to the position, (-) removes them, (=) changes nothing.\n\n${lines.join('\n')}`
}

/** Effect on the position, which the description of each value begins with. */
function typeList({ enum: values, 'x-enum-descriptions': meanings = [] }: TSchema): string {
  return values
    .map((value: string, index: number) => {
      const [, effect] = /^\((.)\)/.exec(meanings[index] ?? '') ?? []
      return effect === undefined ? value : `${value} (${effect})`
    })
    .join(', ')
}

function typeOf({ $ref, type, format, anyOf, items, enum: values }: TSchema): string {
  // The section of the error codes has those.
  if (type === 'string' && values && !values.includes('internal_error')) return values.join(' | ')
  if ($ref !== undefined) return lastPart($ref)
  if (items) return `[${typeOf(items)}]`
  if (anyOf) {
    const names = anyOf.map((each: TSchema) => (each.type === 'null' ? '?' : typeOf(each)))
    return names.join('')
  }
  const names = [type ?? ''].flat()
  const known = names.filter((name) => name !== 'null').map((name) => (format ? format : name))
  return known.join(' or ') + (names.includes('null') ? '?' : '')
}
