/** What a plugin of Swagger UI gets: React without its types, and the components of the page. */
interface System {
  React: {
    createElement(component: unknown, props?: object | null, ...children: unknown[]): unknown
  }
  getComponent(name: string, container?: boolean): unknown
}

interface ResponseBody {
  content: unknown
  contentType?: string
}

interface ModelExample {
  /** Where in the document the schema of the example stands. */
  specPath: { join(separator: string): string }
}

interface Source {
  source?: string
}

interface ExactJson {
  parse(text: string, reviver: (key: string, value: unknown, context?: Source) => unknown): unknown
  rawJSON?(text: string): unknown
}

interface Document {
  paths: Record<string, { get: { responses: Record<string, Response> } }>
}

interface Response {
  content?: Record<string, { examples?: Record<string, { value: unknown }> }>
}

/**
 * A plugin of Swagger UI, which would show the numbers of an answer as the nearest binary floats. Here
 * they keep all their digits, in answers and in the document's examples of them; a browser that cannot
 * do so yet shows the floats.
 *
 * The page gets the source of this function, so it uses nothing from outside of it.
 */
export function exactDigits({ React, getComponent }: System) {
  const { createElement } = React
  const json = JSON as unknown as ExactJson
  const examples = new Map<string, string>()

  const parse = (text: string): unknown =>
    json.parse(text, (_key, value, context) =>
      typeof value === 'number' && context?.source && json.rawJSON
        ? json.rawJSON(context.source)
        : value,
    )

  function keepExamples(document: string): void {
    const { paths } = parse(document) as Document
    for (const [path, { get }] of Object.entries(paths)) {
      const [example] = Object.values(
        get.responses[200]?.content?.['application/json']?.examples ?? {},
      )
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
      responseBody: (Original: unknown) => (props: ResponseBody) => {
        const { content, contentType = '' } = props
        if (typeof content !== 'string' || !contentType.includes('json')) {
          return createElement(Original, props)
        }
        const text = JSON.stringify(parse(content), null, 2)
        const shown = code(text, { downloadable: true, fileName: 'answer.json', canCopy: true })
        return createElement('div', null, createElement('h5', null, 'Response body'), shown)
      },
      modelExample: (Original: unknown) => (props: ModelExample) => {
        const text = examples.get(props.specPath.join(' '))
        if (text === undefined) return createElement(Original, props)
        return createElement(Original, { ...props, example: code(text, { className: 'example' }) })
      },
    },
  }
}
