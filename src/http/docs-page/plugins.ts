/**
 * Plugins of Swagger UI. The page gets only the source text of each function, so a function must not
 * use imports or variables of this file.
 */

/** Parts of Swagger UI's plugin system: React, which has no types here, and the page's components. */
interface System {
  React: {
    createElement(component: unknown, props?: object | null, ...children: unknown[]): unknown
    useState(value: number): [value: number, set: (value: number) => void]
  }
  getComponent(name: string, container?: boolean): unknown
}

interface Response {
  content?: Record<string, { examples?: Record<string, { value: unknown }> }>
}
/** A value of Immutable.js, in which Swagger UI keeps the document. */
interface Immutable {
  getIn(path: string[]): Immutable | undefined
  toJS(): unknown
}
interface ResponsesProps {
  path: string
  method: string
  specSelectors: { specJson(): Immutable }
}
interface ResponseProps {
  code: string
  response: Immutable
}
interface ShortResponse {
  description: string
  content?: Record<string, { examples?: object }>
}
interface CodeSample {
  label: string
  source: string
}
interface ShownDocument {
  servers: { url: string }[]
  components: { parameters: Record<string, Parameter> }
}
interface Parameter {
  description: string
  example?: string
  schema: { default?: unknown }
}
type Paths = Record<string, { get: { responses: Record<string, Response> } }>

/**
 * Shows all digits of numbers in responses and examples, where Swagger UI shows binary floats. A browser
 * without JSON.rawJSON shows the floats.
 */
export function exactDigits({ React: { createElement }, getComponent }: System) {
  const examples = new Map<string, string>()

  const parse = (text: string): unknown =>
    JSON.parse(text, (_key, value, context) =>
      typeof value === 'number' && context?.source && JSON.rawJSON
        ? JSON.rawJSON(context.source)
        : value,
    )

  function keepExamples(document: string): void {
    const { paths } = parse(document) as { paths: Paths }
    for (const [path, { get }] of Object.entries(paths)) {
      const json = get.responses[200]?.content?.['application/json']
      const [example] = Object.values(json?.examples ?? {})
      const specPath = `paths ${path} get responses 200 content application/json schema`
      if (example) examples.set(specPath, JSON.stringify(example.value, null, 2))
    }
  }

  const code = (text: string, props: object) =>
    createElement(getComponent('HighlightCode', true), { language: 'json', ...props }, text)

  return {
    statePlugins: {
      spec: {
        wrapActions: {
          updateSpec: (update: (document: string) => unknown) => (document: string) => {
            if (document) keepExamples(document)
            return update(document)
          },
        },
      },
    },
    wrapComponents: {
      responseBody: (Original: unknown) => (props: { content: unknown; contentType?: string }) => {
        const { content, contentType = '' } = props
        if (typeof content !== 'string' || !contentType.includes('json')) {
          return createElement(Original, props)
        }
        const text = JSON.stringify(parse(content), null, 2)
        const shown = code(text, { downloadable: true, fileName: 'response.json', canCopy: true })
        return createElement('div', null, createElement('h5', null, 'Response body'), shown)
      },
      modelExample: (Original: unknown) => (props: { specPath: string[] }) => {
        const text = examples.get(props.specPath.join(' '))
        if (text === undefined) return createElement(Original, props)
        return createElement(Original, { ...props, example: code(text, { className: 'example' }) })
      },
    },
  }
}

/**
 * Changes the document for the page: the address that the browser sees, the demo connection, and no
 * default values. Swagger UI would send the default of `page`, which is not allowed with `since`.
 */
export function pageDocument(
  base: string,
  placeholder: string,
  demo?: { connectionToken: string },
) {
  const parse = (text: string) =>
    JSON.parse(text, (_key, value, context) =>
      typeof value === 'number' && context?.source && JSON.rawJSON
        ? JSON.rawJSON(context.source)
        : value,
    ) as ShownDocument

  function change(text: string): string {
    const document = parse(text.replaceAll(placeholder, base))
    document.servers = [{ url: base }]
    const { parameters } = document.components
    for (const parameter of Object.values(parameters)) {
      const { default: value } = parameter.schema
      if (value !== undefined) parameter.description += ` Default: ${value}.`
      delete parameter.schema.default
    }
    if (demo && parameters.token) parameters.token.example = demo.connectionToken
    return JSON.stringify(document)
  }
  return {
    statePlugins: {
      spec: {
        wrapActions: {
          updateSpec: (update: (document: string) => unknown) => (document: string) =>
            update(document && change(document)),
        },
      },
      layout: {
        wrapActions: {
          // Anchors of the page are no operations.
          parseDeepLinkHash: (parse: (hash: string) => unknown) => (hash: string) =>
            hash.startsWith('#/') && parse(hash),
        },
      },
    },
  }
}

/**
 * Shortens an opened operation: it shows code samples, hides headers until asked for, and describes
 * each error by a link to its code.
 */
export function shortOperations({ React, getComponent }: System) {
  const { createElement, useState } = React
  const hide = () => () => null

  function Samples({ samples }: { samples: CodeSample[] }) {
    const [shown, show] = useState(0)
    const tabs = samples.map(({ label }, index) =>
      createElement(
        'button',
        { key: label, 'aria-pressed': index === shown, onClick: () => show(index) },
        label,
      ),
    )
    const { label, source } = samples[shown] as CodeSample
    const languages: Record<string, string> = { curl: 'bash', TypeScript: 'javascript' }
    const code = createElement(
      getComponent('HighlightCode', true),
      { key: label, language: languages[label] ?? 'text', canCopy: true },
      source,
    )
    return createElement('div', { className: 'samples' }, createElement('div', null, tabs), code)
  }

  return {
    wrapComponents: {
      InfoContainer: hide,
      ServersContainer: hide,
      // The descriptions say the same in words.
      JSONSchema202012KeywordConstraint:
        (Original: unknown) => (props: { constraint: { value: string } }) =>
          props.constraint.value.startsWith('matches ') ? null : createElement(Original, props),
      responses: (Original: unknown) => (props: ResponsesProps) => {
        const at = ['paths', props.path, props.method, 'x-codeSamples']
        const samples = props.specSelectors.specJson().getIn(at)?.toJS()
        return createElement(
          'div',
          null,
          samples && createElement(Samples, { samples: samples as CodeSample[] }),
          createElement(Original, props),
        )
      },
      headers: (Original: unknown) => (props: object) =>
        createElement(
          'details',
          null,
          createElement('summary', null, 'Headers'),
          createElement(Original, props),
        ),
      response: (Original: unknown) => (props: ResponseProps) => {
        if (props.code === '200') return createElement(Original, props)
        const { description, content } = props.response.toJS() as ShortResponse
        const text = createElement(getComponent('Markdown', true), { source: description })
        const codes = Object.keys(content?.['application/json']?.examples ?? {})
        const links = codes.flatMap((code) => [
          ' ',
          createElement('a', { key: code, href: `#${code}` }, createElement('code', null, code)),
        ])
        return createElement(
          'tr',
          { className: 'response' },
          createElement('td', { className: 'response-col_status' }, props.code),
          createElement('td', { className: 'response-col_description' }, text, ...links),
        )
      },
    },
  }
}
