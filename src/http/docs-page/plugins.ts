/**
 * Plugins of Swagger UI. The page gets only the source text of each function, so a function must not
 * use imports or variables of this file.
 */

/** Parts of Swagger UI's plugin system: React, which has no types here, and the page's components. */
interface System {
  React: {
    createElement(component: unknown, props?: object | null, ...children: unknown[]): unknown
  }
  getComponent(name: string, container?: boolean): unknown
}

interface Response {
  content?: Record<string, { examples?: Record<string, { value: unknown }> }>
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

/** Hides regular expressions: the descriptions say the same in words. */
export function withoutPatterns({ React }: System) {
  return {
    wrapComponents: {
      JSONSchema202012KeywordConstraint:
        (Original: unknown) => (props: { constraint: { value: string } }) =>
          props.constraint.value.startsWith('matches ')
            ? null
            : React.createElement(Original, props),
    },
  }
}
