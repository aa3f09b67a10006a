/** Operations of the page: their forms, requests, responses and samples. */

import { codeSamples } from '../openapi/code-samples.js'
import { addCopy, showCode, watchScrolling } from './code.js'
import { addButton, create, main, remember, remembered } from './dom.js'
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
  // The text of an error is read in the page; rows are read line by line.
  const className = response.ok ? '' : 'wrapped'
  const code = create('code')
  showCode(code, shown.slice(0, MAX_SHOWN))
  const rest = shown.length - MAX_SHOWN
  if (rest > 0) code.append(`\n… and ${rest.toLocaleString('en')} characters more: see Download`)
  const body = create('pre', { wholeText: shown, className }, code)
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

const LANGUAGE = 'language of samples'

let address = base

/** Operations, each with a function that shows its samples again. */
const updates = []

for (const operation of main.querySelectorAll('.operation')) {
  const { path } = operation.dataset
  const form = operation.querySelector('form')
  const samples = [...operation.querySelectorAll('.samples pre')]
  const block = operation.querySelector('.response')
  const status = block.querySelector('output')
  const download = create('a', { textContent: 'Download' })
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
    for (const pre of block.querySelectorAll('pre')) watchScrolling(pre)
    status.textContent = text
    status.className = isError ? 'error' : ''
    // A link without an address is not a link.
    if (elements.length === 0) download.remove()
    else status.after(download)
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
    scrollToResponse(block)
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
    // A link to one of its fields has opened it.
    const isWithin = operation.contains(document.getElementById(location.hash.slice(1)))
    if (operation.open && !isWithin) history.pushState(null, '', `#${operation.id}`)
  })

  const bar = operation.querySelector('.samples .bar')
  for (const { dataset } of samples) {
    const tab = addButton(bar, dataset.label, () => selectLanguage(dataset.label))
    tab.dataset.label = dataset.label
  }
  bar.append(bar.firstChild)
  updates.push(update)
  update()
}

/** On a phone, the response is below all fields. */
function scrollToResponse(block) {
  const { top } = block.getBoundingClientRect()
  if (top < 0 || top > innerHeight / 2) block.scrollIntoView()
}

/** Shows the example of an error beside the operation: a copy of the one in the section of the error. */
for (const details of main.querySelectorAll('details[data-error]'))
  details.addEventListener('toggle', () => showExample(details), { once: true })

function showExample(details) {
  const example = main.querySelector(`#${details.dataset.error} ~ .code`).cloneNode(true)
  example.querySelector('.bar').replaceChildren('Example response')
  addCopy(example)
  details.append(example)
}

/** Shows the samples of all operations in one language. */
function selectLanguage(label) {
  for (const pre of main.querySelectorAll('.samples pre')) pre.hidden = pre.dataset.label !== label
  for (const tab of main.querySelectorAll('.samples button[data-label]'))
    tab.ariaPressed = tab.dataset.label === label
  remember(LANGUAGE, label)
}
const stored = remembered(LANGUAGE)
const labels = [...main.querySelectorAll('.samples pre')].map(({ dataset }) => dataset.label)
// A language that the reader has chosen in an older release may have another name now.
selectLanguage(labels.includes(stored) ? stored : 'curl')

/** Fills the forms with the demo tokens, and shows the samples with the address of this service. */
export function fillForms({ demo, address: newAddress, maximumLimit }) {
  address = newAddress
  fill('appToken', demo?.appToken)
  fill('token', demo?.connectionToken)
  if (maximumLimit)
    for (const text of main.querySelectorAll('[id$=".limit.text"] p'))
      text.textContent = text.textContent.replace(LIMITS, `1 to ${maximumLimit}`)
  for (const update of updates) update()
}

const LIMITS = /1 to \d+/

/** The user may have typed a token before the settings were there. */
function fill(name, value) {
  for (const input of main.querySelectorAll(`input[name=${name}]`)) input.value ||= value ?? ''
}
