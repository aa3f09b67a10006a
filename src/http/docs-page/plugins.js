/** Plugins of Swagger UI. */

/** Parses JSON with all digits of numbers. A browser without JSON.rawJSON has binary floats instead. */
const parse = (text) =>
  JSON.parse(text, (_key, value, context) =>
    typeof value === 'number' && context?.source && JSON.rawJSON
      ? JSON.rawJSON(context.source)
      : value,
  )

/** Shows all digits of numbers in responses and examples, where Swagger UI shows binary floats. */
export function exactDigits({ React: { createElement }, getComponent }) {
  const examples = new Map()

  function keepExamples(document) {
    for (const [path, { get }] of Object.entries(parse(document).paths)) {
      const json = get.responses[200]?.content?.['application/json']
      const [example] = Object.values(json?.examples ?? {})
      const specPath = `paths ${path} get responses 200 content application/json schema`
      if (example) examples.set(specPath, JSON.stringify(example.value, null, 2))
    }
  }

  const code = (text, props) =>
    createElement(getComponent('HighlightCode', true), { language: 'json', ...props }, text)

  return {
    statePlugins: {
      spec: {
        wrapActions: {
          updateSpec: (update) => (document) => {
            if (document) keepExamples(document)
            return update(document)
          },
        },
      },
    },
    wrapComponents: {
      responseBody: (Original) => (props) => {
        const { content, contentType = '' } = props
        if (typeof content !== 'string' || !contentType.includes('json')) {
          return createElement(Original, props)
        }
        const text = JSON.stringify(parse(content), null, 2)
        const shown = code(text, { downloadable: true, fileName: 'response.json', canCopy: true })
        return createElement('div', null, createElement('h5', null, 'Response body'), shown)
      },
      modelExample: (Original) => (props) => {
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
export function pageDocument(base, placeholder, demo) {
  function change(text) {
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
          updateSpec: (update) => (document) => update(document && change(document)),
        },
      },
      layout: {
        wrapActions: {
          // Anchors of the page are no operations.
          parseDeepLinkHash: (parseHash) => (hash) => hash.startsWith('#/') && parseHash(hash),
        },
      },
    },
  }
}

const HIGHLIGHTED = { curl: 'bash', TypeScript: 'javascript' }

/**
 * Shortens an opened operation: it shows code samples, hides headers until asked for, and describes
 * each error by a link to its code.
 */
export function shortOperations({ React: { createElement, useState }, getComponent }) {
  const hide = () => () => null

  function Samples({ samples }) {
    const [shown, show] = useState(0)
    const tabs = samples.map(({ label }, index) =>
      createElement(
        'button',
        { key: label, 'aria-pressed': index === shown, onClick: () => show(index) },
        label,
      ),
    )
    const { label, source } = samples[shown]
    const code = createElement(
      getComponent('HighlightCode', true),
      { key: label, language: HIGHLIGHTED[label] ?? 'text', canCopy: true },
      source,
    )
    return createElement('div', { className: 'samples' }, createElement('div', null, tabs), code)
  }

  return {
    wrapComponents: {
      InfoContainer: hide,
      ServersContainer: hide,
      // The descriptions say the same in words.
      JSONSchema202012KeywordConstraint: (Original) => (props) =>
        props.constraint.value.startsWith('matches ') ? null : createElement(Original, props),
      responses: (Original) => (props) => {
        const at = ['paths', props.path, props.method, 'x-codeSamples']
        const samples = props.specSelectors.specJson().getIn(at)?.toJS()
        return createElement(
          'div',
          null,
          samples && createElement(Samples, { samples }),
          createElement(Original, props),
        )
      },
      headers: (Original) => (props) =>
        createElement(
          'details',
          null,
          createElement('summary', null, 'Headers'),
          createElement(Original, props),
        ),
      response: (Original) => (props) => {
        if (props.code === '200') return createElement(Original, props)
        const { description, content } = props.response.toJS()
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
