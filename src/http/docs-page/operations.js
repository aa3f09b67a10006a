/** Operations of the page: their forms, requests, responses and samples. */

import { codeSamples } from '../openapi/code-samples.js'
import { copy, showCode } from './code.js'
import { addButton, create, main, remember, remembered } from './dom.js'
import { markdownOf } from './markdown.js'
import { base } from './settings.js'

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

/** Both tokens are entered once, for all operations. */
const tokens = main.querySelector('#tokens')

/** Reads the fields that have a value, by their place in the request. */
function readForm(form) {
  const request = { path: {}, query: {}, header: {}, bearer: {} }
  for (const { dataset, name, value } of [...tokens.elements, ...form.elements])
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

/** Links to the sections of the error codes in a response. */
function helpLinks({ response, text }) {
  if (response.ok) return []
  const codes = new Set([...text.matchAll(/"code":"(\w+)"/g)].map(([, code]) => code))
  const known = [...codes].filter((code) => document.getElementById(code))
  const links = known.map((code) => create('a', { href: `#${code}` }, create('code', {}, code)))
  if (links.length === 0) return []
  const separated = links.flatMap((link, index) => (index > 0 ? [', ', link] : [link]))
  return [create('p', { className: 'help' }, 'Cause and remedy: ', ...separated)]
}

function renderResponse({ response, text }) {
  const type = response.headers.get('content-type') ?? ''
  const shown = type.startsWith('application/json') ? indent(text) : text
  const className = response.ok ? '' : 'wrapped'
  const code = create('code')
  showCode(code, shown.slice(0, MAX_SHOWN))
  const rest = shown.length - MAX_SHOWN
  if (rest > 0) code.append(`\n… and ${rest.toLocaleString('en')} characters more: see Download`)
  const body = create('pre', { wholeText: shown, className, tabIndex: 0 }, code)
  const headers = [...response.headers].map((header) => header.join(': ')).join('\n')
  return [
    ...helpLinks({ response, text }),
    body,
    create(
      'details',
      {},
      create('summary', {}, 'Response headers'),
      create('pre', {}, create('code', {}, headers)),
    ),
  ]
}

let address = base

/** Functions that show the samples of the open operations again. */
const updates = []

/** Gives an operation its controls, when it is first opened. */
function start(operation) {
  const { path } = operation.dataset
  const form = operation.querySelector('form')
  for (const template of form.querySelectorAll('template')) template.replaceWith(template.content)
  const samples = [...operation.querySelectorAll('.samples pre')]
  const block = operation.querySelector('.response')
  const output = block.querySelector('output')
  const download = create('a', { textContent: 'Download' })
  const tabs = []
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

  const show = (status, text, elements) => {
    for (const element of shown) element.remove()
    shown = elements
    block.append(...shown)
    output.textContent = text
    output.className = status < 400 ? '' : 'error'
    for (const tab of tabs) tab.ariaPressed = tab.textContent === `${status}`
    URL.revokeObjectURL(download.href)
    update()
  }

  form.addEventListener('input', update)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    // The browser shows the field of the token that is missing.
    if (!tokens.reportValidity()) return
    output.textContent = 'Sending …'
    scrollToResponse(block)
    try {
      const result = await send(path, form)
      const { response, text, time } = result
      const file = new Blob([text], { type: response.headers.get('content-type') ?? '' })
      const size = `${file.size.toLocaleString('en')} B`
      const line = `${response.status} ${response.statusText} · ${time} ms · ${size}`
      show(response.status, line, renderResponse(result))
      download.href = URL.createObjectURL(file)
      download.download = `response.${/csv|ndjson|json/.exec(file.type)?.[0] ?? 'txt'}`
      output.append(' ', download)
    } catch (error) {
      show(undefined, `No response: ${error.message}`, [])
    }
  })
  addButton(operation.querySelector('.send'), 'Clear', () => {
    for (const input of form.querySelectorAll('[data-in]'))
      input.value = input.options?.[0].value ?? ''
    show(200, EXAMPLE, [])
  })

  addButton(operation.querySelector('p'), 'Copy as Markdown', (button) =>
    copy(markdownOf(operation), button),
  )

  for (const row of operation.querySelectorAll('.responses tbody tr')) {
    const status = row.cells[0].textContent
    const elements = () => (status === '200' ? [] : examplesOf(row))
    tabs.push(
      addButton(block.querySelector('.bar'), status, () => show(status, EXAMPLE, elements())),
    )
  }
  const bar = operation.querySelector('.samples .bar')
  for (const { dataset } of samples) {
    const tab = addButton(bar, dataset.label, () => selectLanguage(dataset.label))
    tab.dataset.label = dataset.label
  }
  for (const each of operation.querySelectorAll('.results .bar'))
    each.append(each.querySelector('.copy'))
  updates.push(update)
  selectLanguage(language)
  show(200, EXAMPLE, [])
}

const EXAMPLE = 'Example response'

/** What a status means, and copies of the examples in the sections of its errors. */
function examplesOf(row) {
  const meaning = create('p', { className: 'help' })
  meaning.append(...row.cells[1].cloneNode(true).childNodes)
  const codes = [...meaning.querySelectorAll('a[href^="#"]')].map(({ hash }) => hash)
  const copies = codes.map((hash) => main.querySelector(`${hash} ~ .code pre`).cloneNode(true))
  for (const copy of copies) Object.assign(copy, { className: 'wrapped', tabIndex: 0 })
  return [meaning, ...copies]
}

/** On a phone, the response is below all fields. */
function scrollToResponse(block) {
  const { top } = block.getBoundingClientRect()
  if (top < 0 || top > innerHeight / 2) block.scrollIntoView()
}

const LANGUAGE = 'language of samples'
const labels = [...main.querySelectorAll('.samples pre')].map(({ dataset }) => dataset.label)
// A language that the reader has chosen in an older release may have another name now.
let language = labels.includes(remembered(LANGUAGE)) ? remembered(LANGUAGE) : 'curl'

/** Shows the samples of all operations in one language. */
function selectLanguage(label) {
  language = label
  for (const pre of main.querySelectorAll('.samples pre')) pre.hidden = pre.dataset.label !== label
  for (const tab of main.querySelectorAll('.samples button[data-label]'))
    tab.ariaPressed = tab.dataset.label === label
  remember(LANGUAGE, label)
}

for (const operation of main.querySelectorAll('.operation')) {
  if (operation.open) start(operation)
  else operation.addEventListener('toggle', () => start(operation), { once: true })
  operation.addEventListener('toggle', () => {
    // A link to one of its fields has opened it.
    const isWithin = operation.contains(document.getElementById(location.hash.slice(1)))
    if (operation.open && !isWithin) history.pushState(null, '', `#${operation.id}`)
  })
}

/** Fills the forms with the demo tokens, and shows the samples with the address of this service. */
export function fillForms({ demo, address: newAddress, maximumLimit }) {
  address = newAddress
  // The user may have typed a token before the settings were there.
  tokens.elements.appToken.value ||= demo?.appToken ?? ''
  tokens.elements.token.value ||= demo?.connectionToken ?? ''
  if (maximumLimit)
    for (const text of main.querySelectorAll('[id$=".limit.text"] p'))
      text.textContent = text.textContent.replace(LIMITS, `1 to ${maximumLimit}`)
  for (const update of updates) update()
}

const LIMITS = /1 to \d+/
