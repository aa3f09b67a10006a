/** Script of the page: code, requests, navigation and search. */
import { codeSamples, PLACEHOLDER } from '../openapi/code-samples.js'

/** Address of the service as the browser sees it, with the path that a proxy removes. */
const base = new URL('../..', import.meta.url).href.replace(/\/$/, '')

/** Reads what depends on the settings of this service: the page is the same file everywhere. */
async function readSettings() {
  const response = await fetch(`${base}/openapi.json`)
  const { servers, paths, 'x-demo-tokens': demo } = await response.json()
  const [{ url }] = servers
  const parameters = Object.values(paths).flatMap(({ get }) => get.parameters)
  const limit = parameters.find(({ name }) => name === 'limit')
  return { demo, address: url === '/' ? base : url, limit: limit.description }
}

/** Without them, the page still sends requests. */
const { demo, address = base, limit } = await readSettings().catch(() => ({}))

const main = document.querySelector('main')
const nav = document.querySelector('nav')

function create(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties)
  element.append(...children)
  return element
}

function addButton(bar, textContent, onClick) {
  const button = create('button', { type: 'button', textContent })
  button.addEventListener('click', () => onClick(button))
  bar.append(button)
  return button
}

/** Lets lines break in a text. */
const breakable = (text, places) =>
  text.split(places).flatMap((part, index) => (index > 0 ? [create('wbr'), part] : [part]))

// Code

const KEYWORDS =
  'as async await catch class const continue def else except export false for from function if import in let ' +
  'new null of public return static throw throws true try var void with'
const TOKENS = new RegExp(
  [
    /(?<comment>(?:#|\/\/) .*)/,
    /(?<name>"[^"\n]*"(?=:))/,
    /(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)/,
    /(?<number>(?<![\w.-])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w-]))/,
    new RegExp(`(?<keyword>(?<![\\w.-])(?:${KEYWORDS.replaceAll(' ', '|')})(?![\\w-]))`),
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
)

/** Shows text with its tokens as elements, which have colours. */
function showCode(code, text) {
  const parts = []
  let end = 0
  for (const { 0: token, index, groups } of text.matchAll(TOKENS)) {
    const className = Object.keys(groups).find((name) => groups[name] !== undefined)
    parts.push(
      text.slice(end, index),
      create('span', { className }, ...breakable(token, /(?<=[/?&])/)),
    )
    end = index + token.length
  }
  code.replaceChildren(...parts, text.slice(end))
}

async function copy(block, button) {
  const pre = block.querySelector('pre:not([hidden])')
  const text = pre.wholeText ?? pre.textContent
  if (navigator.clipboard) await navigator.clipboard.writeText(text)
  else {
    // Browsers have no clipboard on a page without TLS.
    const area = create('textarea', { value: text })
    button.after(area)
    area.select()
    document.execCommand('copy')
    area.remove()
  }
  button.textContent = 'Copied'
  setTimeout(() => {
    button.textContent = 'Copy'
  }, 2_000)
}

const demoText = main.querySelector('#demo')
if (demo) demoText.hidden = false
else demoText.remove()

/** Replaces the names that the page has for the address and the demo tokens. */
const ofInstance = (text) =>
  text
    .replaceAll(PLACEHOLDER, address)
    .replace('{appToken}', demo?.appToken)
    .replace('{connectionToken}', demo?.connectionToken)

for (const input of main.querySelectorAll('input[name=appToken]'))
  input.value = demo?.appToken ?? ''
for (const input of main.querySelectorAll('input[name=token]'))
  input.value = demo?.connectionToken ?? ''
const LIMITS = /1 to \d+/
if (limit)
  for (const text of main.querySelectorAll('[id$=".limit.text"] p'))
    text.textContent = text.textContent.replace(LIMITS, LIMITS.exec(limit)[0])

for (const block of main.querySelectorAll('.code')) {
  for (const code of block.querySelectorAll('code')) showCode(code, ofInstance(code.textContent))
  addButton(block.querySelector('.bar'), 'Copy', (button) => copy(block, button))
}

// Operations

/** Characters of a response that the page shows. The download and the copy have all. */
const MAX_SHOWN = 100_000

/** Indents JSON without parsing it, so each number keeps its digits. */
function indent(json) {
  let depth = 0
  const line = () => `\n${'  '.repeat(depth)}`
  return json.replace(/"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}[\],:]/g, (token) => {
    if (token === ':') return ': '
    if (token === ',') return token + line()
    if (token === '{' || token === '[') {
      depth += 1
      return token + line()
    }
    if (token === '}' || token === ']') {
      depth -= 1
      return line() + token
    }
    return token
  })
}

/** Reads the fields that have a value, by their place in the request. */
function readForm(form) {
  const request = { path: {}, query: {}, header: {}, bearer: {} }
  for (const { dataset, name, value } of form.elements)
    if (dataset.in && value.trim()) request[dataset.in][name] = value.trim()
  return request
}

async function send(path, form) {
  const { path: names, query, header, bearer } = readForm(form)
  const search = Object.keys(query).length > 0 ? `?${new URLSearchParams(query)}` : ''
  const url = base + path.replace('{token}', encodeURIComponent(names.token)) + search
  const authorization = bearer.appToken && { Authorization: `Bearer ${bearer.appToken}` }
  const start = performance.now()
  const response = await fetch(url, { headers: { ...header, ...authorization }, cache: 'no-store' })
  const text = await response.text()
  return { response, text, time: Math.round(performance.now() - start) }
}

function renderResponse({ response, text }) {
  const type = response.headers.get('content-type') ?? ''
  const shown = type.startsWith('application/json') ? indent(text) : text
  const code = create('code')
  showCode(code, shown.slice(0, MAX_SHOWN))
  const rest = shown.length - MAX_SHOWN
  if (rest > 0) code.append(`\n… and ${rest.toLocaleString('en')} characters more: see Download`)
  const headers = [...response.headers].map((header) => header.join(': ')).join('\n')
  return [
    create('pre', { tabIndex: 0, wholeText: shown }, code),
    create(
      'details',
      {},
      create('summary', {}, 'Response headers'),
      create('pre', { tabIndex: 0 }, create('code', {}, headers)),
    ),
  ]
}

const LANGUAGE = 'language of samples'

for (const operation of main.querySelectorAll('.operation')) {
  const { path } = operation.dataset
  const form = operation.querySelector('form')
  const samples = [...operation.querySelectorAll('.samples pre')]
  const block = operation.querySelector('.response')
  const status = block.querySelector('output')
  const download = create('a', { textContent: 'Download', hidden: true })
  status.after(download)
  let shown = []

  const update = () => {
    const { query, header } = readForm(form)
    // The default needs no header.
    if (form.elements.Accept.selectedIndex === 0) delete header.Accept
    for (const [index, { source }] of codeSamples(address, path, query, header).entries())
      showCode(samples[index].firstChild, source)
    for (const example of block.querySelectorAll('[data-type]'))
      example.hidden = shown.length > 0 || example.dataset.type !== form.elements.Accept.value
  }

  const show = (text, isError, elements) => {
    for (const element of shown) element.remove()
    shown = elements
    block.append(...shown)
    status.textContent = text
    status.className = isError ? 'error' : ''
    download.hidden = elements.length === 0
    URL.revokeObjectURL(download.href)
    update()
  }

  form.addEventListener('input', ({ target: { name, value } }) => {
    // All operations share the tokens.
    if (name === 'token' || name === 'appToken')
      for (const input of main.querySelectorAll(`input[name=${name}]`)) input.value = value
    update()
  })
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    status.textContent = 'Sending …'
    try {
      const result = await send(path, form)
      const { response, text, time } = result
      const file = new Blob([text], { type: response.headers.get('content-type') ?? '' })
      const size = `${file.size.toLocaleString('en')} B`
      const line = `${response.status} ${response.statusText} · ${time} ms · ${size}`
      show(line, response.status >= 400, renderResponse(result))
      download.href = URL.createObjectURL(file)
      download.download = `response.${/csv|ndjson|json/.exec(file.type)?.[0] ?? 'txt'}`
    } catch (error) {
      show(`No response: ${error.message}`, true, [])
    }
  })
  addButton(operation.querySelector('.send'), 'Clear', () => {
    for (const input of form.querySelectorAll('[data-in=query], [data-in=header]'))
      input.value = input.options?.[0].value ?? ''
    show('Example response', false, [])
  })
  operation.addEventListener('toggle', () => {
    if (operation.open) history.replaceState(null, '', `#${operation.id}`)
  })

  const bar = operation.querySelector('.samples .bar')
  for (const { dataset } of samples) {
    const tab = addButton(bar, dataset.label, () => selectLanguage(dataset.label))
    tab.dataset.label = dataset.label
  }
  bar.append(bar.firstChild)
  update()
}

/** Shows the samples of all operations in one language. */
function selectLanguage(label) {
  for (const pre of main.querySelectorAll('.samples pre')) pre.hidden = pre.dataset.label !== label
  for (const tab of main.querySelectorAll('.samples button[data-label]'))
    tab.ariaPressed = tab.dataset.label === label
  localStorage.setItem(LANGUAGE, label)
}
selectLanguage(localStorage.getItem(LANGUAGE) ?? 'curl')

// Navigation

const contents = nav.querySelector('#contents')
const phone = matchMedia('(max-width: 56rem)')
const setContents = () => {
  contents.open = !phone.matches
}
phone.addEventListener('change', setContents)
setContents()

/** Opens and shows the target of the address. Earlier releases had `#/tag/operation`. */
function showTarget() {
  let id
  try {
    id = decodeURIComponent(location.hash).slice(1).split('/').at(-1)
  } catch {
    // `%zz` is no character.
  }
  const target = id && document.getElementById(id)
  if (!target) return
  const operation = target.closest('.operation')
  if (operation) operation.open = true
  target.scrollIntoView()
}
addEventListener('hashchange', showTarget)
showTarget()

const sections = [...contents.querySelectorAll('a')].map((link) => ({
  link,
  target: document.getElementById(link.hash.slice(1)),
}))

function markSection() {
  const { link } =
    sections.findLast(({ target }) => target.getBoundingClientRect().top < 120) ?? sections[0]
  if (link.ariaCurrent === 'true') return
  for (const section of sections) section.link.ariaCurrent = section.link === link ? 'true' : null
  link.scrollIntoView({ block: 'nearest' })
}
addEventListener('scroll', () => requestAnimationFrame(markSection), { passive: true })
markSection()

// Theme

const THEME = 'theme'
const root = document.documentElement
const system = matchMedia('(prefers-color-scheme: dark)')

const themeButton = addButton(nav, '', () => {
  // The theme of the system needs no choice: the page then follows its changes.
  const other = isDark() ? 'light' : 'dark'
  if (system.matches === (other === 'dark')) localStorage.removeItem(THEME)
  else localStorage.setItem(THEME, other)
  setTheme()
})
themeButton.className = 'theme'

const isDark = () =>
  root.dataset.theme === undefined ? system.matches : root.dataset.theme === 'dark'

function setTheme() {
  const chosen = localStorage.getItem(THEME)
  if (chosen) root.dataset.theme = chosen
  else delete root.dataset.theme
  themeButton.textContent = isDark() ? 'Light theme' : 'Dark theme'
}
system.addEventListener('change', setTheme)
setTheme()

// Search

const search = nav.querySelector('input')
const results = nav.querySelector('#results')
const found = nav.querySelector('#found')

/** Text from a heading to the next one. */
function textBelow(heading) {
  const texts = []
  for (let next = heading.nextElementSibling; next; next = next.nextElementSibling) {
    if (next.matches('h2, h3, .operation')) break
    // Each field has an entry.
    if (!next.querySelector('tr[id]')) texts.push(next.textContent)
  }
  return texts.join(' ')
}

const entryOf = (id, title, text) => ({ id, title, text: text.replace(/\s+/g, ' ').trim() })
const entries = [
  ...[...main.querySelectorAll('.operation')].map((operation) => {
    const texts = [...operation.querySelectorAll('.route, .operation > p, .field, td')]
    return entryOf(
      operation.id,
      operation.querySelector('h3').textContent,
      texts.map(({ textContent }) => textContent).join(' '),
    )
  }),
  ...[...main.querySelectorAll('h2[id], h3[id]')].map((heading) =>
    entryOf(heading.id, heading.textContent, textBelow(heading)),
  ),
  ...[...main.querySelectorAll('tr[id]')].map((row) =>
    entryOf(row.id, row.id, row.cells[2].textContent),
  ),
]

const MAX_RESULTS = 20

/** Finds the entries with all words. Titles come first, and words before parts of words. */
function find(words) {
  const starts = words.map((word) => new RegExp(`\\b${word.replace(/\W/g, '\\$&')}`, 'i'))
  const rank = ({ title, text }) => {
    if (starts.every((start) => start.test(title))) return 0
    if (starts.every((start) => start.test(`${title} ${text}`))) return 1
    const all = `${title} ${text}`.toLowerCase()
    return words.every((word) => all.includes(word)) ? 2 : undefined
  }
  const ranked = entries.map((entry) => ({ ...entry, rank: rank(entry) }))
  return ranked
    .filter((entry) => entry.rank !== undefined)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, MAX_RESULTS)
}

/** Whole words around the first match. */
function excerpt(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word))
  const start = text.lastIndexOf(' ', Math.max(0, at - 30)) + 1
  const end = text.indexOf(' ', at + 60)
  return (start > 0 ? '… ' : '') + (end < 0 ? text.slice(start) : `${text.slice(start, end)} …`)
}

/** Places in names where lines break. */
const NAME_PARTS = /(?<=[._])/

function showResults() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  const items = words.length > 0 ? find(words) : []
  results.replaceChildren(
    ...items.map(({ id, title, text }) =>
      create(
        'li',
        {},
        create(
          'a',
          { href: `#${id}` },
          ...breakable(title, NAME_PARTS),
          create('small', {}, excerpt(text, words[0])),
        ),
      ),
    ),
  )
  const noun = items.length === 1 ? 'result' : 'results'
  found.textContent = words.length > 0 ? `${items.length || 'No'} ${noun}` : ''
  results.hidden = words.length === 0
  contents.hidden = words.length > 0
}
search.addEventListener('input', showResults)
nav.addEventListener('keydown', (event) => {
  const links = [search, ...results.querySelectorAll('a')]
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  const at = links.indexOf(event.target)
  if (event.key === 'Enter' && event.target === search) links[1]?.click()
  if (!step || at < 0) return
  event.preventDefault()
  links[at + step]?.focus()
})
addEventListener('keydown', (event) => {
  const isSlash = event.key === '/' && !event.target.closest('input, select')
  const isCommand = event.key === 'k' && (event.ctrlKey || event.metaKey)
  if (!isSlash && !isCommand) return
  event.preventDefault()
  search.focus()
})
nav.addEventListener('click', ({ target }) => {
  const link = target.closest('a')
  if (!link) return
  if (phone.matches) {
    search.value = ''
    showResults()
    contents.open = false
  }
  // The same target again causes no event.
  if (link.hash === location.hash) showTarget()
})
