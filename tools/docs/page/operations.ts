import type { TSchema } from '@sinclair/typebox'
import { MEDIA_TYPES } from '../../../src/schemas/list.ts'
import { lastPart, schemaSection, schemasOf, typeOf } from './fields.ts'
import { breakable, escapeHtml, markdown, pre } from './markdown.ts'
import type { Operation, PageDocument, Parameter, Response } from './page-document.ts'

const TYPE_TEXTS: Record<string, string> = {
  [MEDIA_TYPES.json]: 'JSON',
  [MEDIA_TYPES.exactJson]: 'JSON, decimals as strings',
  [MEDIA_TYPES.ndjson]: 'NDJSON: all rows, one a line',
  [MEDIA_TYPES.csv]: 'CSV: all rows, as a table',
}

/** Renders each operation as a closed section with a form, code samples and a response. */
export function renderOperations(document: PageDocument): string {
  const { paths, components } = document
  const sections = Object.entries(paths).map(([path, { get }]) => {
    const { operationId: id, responses, parameters } = get
    const content = responses[200]?.content ?? {}
    const others = parameters.filter((parameter) => parameter.in !== 'path')
    const fields = others.map((parameter) => field(id, parameter))
    return `<details class="operation" id="${id}" data-path="${path}">
<summary><h3>${get.summary}</h3><span class="route"><b>GET</b> <code>${breakable(path)}</code></span></summary>
${markdown.parse(get.description)}
<div class="columns">
<form id="${id}.form" autocomplete="off">
<p>The tokens are <a href="#tokens">above</a>, once for all operations.</p>
${fields.join('\n')}
${accept(id, Object.keys(content))}
<p class="send"><button>Send request</button></p>
</form>
<div class="results">
${samples(get)}
${exampleResponses(content)}
</div>
</div>
${rowFields(get, document)}
${responseTable(responses)}
</details>`
  })
  const [first] = Object.values(paths)
  const token = first?.get.parameters.find((parameter) => parameter.in === 'path') as Parameter
  return [
    '<form id="tokens" autocomplete="off">',
    appToken(components.securitySchemes.appToken.description),
    tokenField(token),
    '</form>',
    ...sections,
  ].join('\n')
}

/** Renders a label and its description. */
function row(id: string, name: string, about: string, description: string, control: string) {
  return `<div class="field">
<label for="${id}"><code>${name}</code> <small>${about}</small></label>
<div id="${id}.text">${markdown.parse(description)}</div>
${control.replace(/(?<=<(?:input|select) )/, `id="${id}" aria-describedby="${id}.text" `)}
</div>`
}

/** Browsers keep nothing of the field, because tokens are secret. */
const input = (name: string, place: string, attributes: string) =>
  `<input name="${name}" data-in="${place}" autocomplete="off" autocapitalize="off" spellcheck="false" ${attributes}>`

const appToken = (description: string) =>
  row(
    'tokens.appToken',
    'Authorization',
    'header, bearer token, <em>required</em>',
    description,
    input('appToken', 'bearer', 'class="secret"'),
  )

const tokenField = ({ name, in: place, schema, description }: Parameter) =>
  row(
    `tokens.${name}`,
    name,
    `${place}, ${typeOf(schema)}, <em>required</em>`,
    description,
    input(name, place, 'required'),
  )

/** The controls of a closed operation are templates: browsers look at each control of a page when it starts. */
const template = (control: string) => `<template>${control}</template>`

function field(operationId: string, parameter: Parameter) {
  const { name, in: place, schema, example: text } = parameter
  const { default: preset } = schema
  const description = preset
    ? `${parameter.description} Default: ${preset}.`
    : parameter.description
  const example = text ? `placeholder="For example ${escapeHtml(text)}"` : ''
  return row(
    `${operationId}.${name}`,
    name,
    `${place}, ${typeOf(schema)}`,
    description,
    template(input(name, place, example)),
  )
}

function accept(id: string, mediaTypes: string[]) {
  const options = mediaTypes.map((type) => `<option value="${type}">${TYPE_TEXTS[type]}</option>`)
  const control = `<select name="Accept" data-in="header">${options.join('')}</select>`
  return row(`${id}.Accept`, 'Accept', 'header', 'Format of the response.', template(control))
}

/** Describes the fields of a row beside the operation, and those of its other schemas when a reader opens them. */
function rowFields(operation: Operation, document: PageDocument): string {
  const { schemas } = document.components
  const own = schemasOf(operation, document)
  const list = schemas[own[0] ?? ''] as TSchema
  const row = lastPart((list.items ?? list.properties.items.items).$ref)
  const others = own.filter((name) => name !== row)
  const details = others.map(
    (name) => `<details><summary>${name}</summary>${schemaSection(name, schemas, 5)}</details>`,
  )
  return `<div class="fields">${schemaSection(row, schemas, 4, ' <small>fields of a row</small>')}${details.join('\n')}</div>`
}

function samples({ 'x-codeSamples': all }: Operation) {
  const blocks = all.map(({ label, source }, index) =>
    pre(source, ` data-label="${label}"${index > 0 ? ' hidden' : ''}`),
  )
  return `<div class="code samples"><div class="bar"></div>${blocks.join('')}</div>`
}

function exampleResponses(content: NonNullable<Response['content']>) {
  const blocks = Object.entries(content).map(([type, { examples }], index) => {
    const [example] = Object.values(examples ?? {})
    const { value } = example ?? {}
    const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
    return pre(text, ` data-type="${type}" tabindex="0"${index > 0 ? ' hidden' : ''}`)
  })
  return `<div class="code response"><div class="bar"><output>Example response</output></div>${blocks.join('')}</div>`
}

function responseTable(responses: Operation['responses']) {
  const rows = Object.entries(responses).map(([status, { description, content, headers }]) => {
    // The sections of the errors have their examples. The page shows copies of them beside the request.
    const problems = Object.keys(content?.[MEDIA_TYPES.json]?.examples ?? {}).map(
      (code) => `<a href="#${code}"><code>${code}</code></a>`,
    )
    const links =
      status === '200'
        ? typeOf(content?.[MEDIA_TYPES.json]?.schema as TSchema) + headerList(headers)
        : problems.join(', ')
    return `<tr><td><code>${status}</code></td><td>${markdown.parseInline(description)} ${links}</td></tr>`
  })
  return `<h4>Responses</h4>
<div class="responses"><table><thead><tr><th>Status</th><th>Meaning</th></tr></thead><tbody>${rows.join('\n')}</tbody></table></div>`
}

function headerList(headers: Response['headers']) {
  const items = Object.entries(headers ?? {}).map(
    ([name, { description }]) =>
      `<dt><code>${name}</code></dt><dd>${markdown.parseInline(description)}</dd>`,
  )
  return ` <details><summary>Headers</summary><dl>${items.join('\n')}</dl></details>`
}
