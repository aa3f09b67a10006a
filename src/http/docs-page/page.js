/** Script of the page: Swagger UI, navigation, search, and the address of the service in samples. */
/* global SwaggerUIBundle, demo, PLACEHOLDER */
import { exactDigits, pageDocument, shortOperations } from './plugins.js'

/** Address of the service as the browser sees it, with the path that a proxy removes. */
const base = new URL('../..', import.meta.url).href.replace(/\/$/, '')
const main = document.querySelector('main')

// Browsers print no backgrounds.
const dark = matchMedia('screen and (prefers-color-scheme: dark)')
const setTheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', setTheme)
setTheme()

for (const code of main.querySelectorAll('pre code')) {
  code.textContent = code.textContent.replaceAll(PLACEHOLDER, base)
}

const ui = SwaggerUIBundle({
  dom_id: '#swagger-ui',
  url: `${base}/openapi.json`,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [exactDigits, () => pageDocument(base, PLACEHOLDER, demo), shortOperations],
  layout: 'BaseLayout',
  docExpansion: 'list',
  deepLinking: true,
  displayOperationId: false,
  // The page lists the fields itself.
  defaultModelsExpandDepth: -1,
  defaultModelExpandDepth: 4,
  displayRequestDuration: true,
  tryItOutEnabled: false,
  filter: false,
  validatorUrl: null,
  // A token in the browser's storage would outlive the tab.
  persistAuthorization: false,
  onComplete: () => {
    if (demo) ui.preauthorizeApiKey('appToken', demo.appToken)
    showTarget()
  },
})

/** Scrolls to the target of the address. Swagger UI changes the height of the page after its load. */
function showTarget() {
  const hash = decodeURIComponent(location.hash.slice(1))
  const [, tag, operationId] = hash.split('/')
  if (operationId) ui.layoutActions.show(['operations', tag, operationId], true)
  const id = operationId ? `operations-${tag.replaceAll(' ', '_')}-${operationId}` : hash
  requestAnimationFrame(() => document.getElementById(id)?.scrollIntoView())
}
addEventListener('hashchange', showTarget)

const nav = document.querySelector('nav')
const search = nav.querySelector('input')
const contents = nav.querySelector('#contents')
const results = nav.querySelector('#results')
const phone = matchMedia('(max-width: 56rem)')
const setContents = () => {
  contents.open = !phone.matches
}
phone.addEventListener('change', setContents)
setContents()

/** Text from a heading to the next one. */
function textBelow(heading) {
  const texts = []
  for (let next = heading.nextElementSibling; next; next = next.nextElementSibling) {
    if (/^H[123]$/.test(next.tagName) || next.id === 'swagger-ui') break
    // Each field has an entry.
    if (!next.querySelector('tr[id]')) texts.push(next.textContent)
  }
  return texts.join(' ')
}

const entryOf = (href, title, text) => ({ href, title, text: text.replace(/\s+/g, ' ').trim() })
const entries = [
  ...[...nav.querySelectorAll('[data-text]')].map((link) =>
    entryOf(link.hash, link.textContent, link.dataset.text),
  ),
  ...[...main.querySelectorAll('h2[id], h3[id]')].map((heading) =>
    entryOf(`#${heading.id}`, heading.textContent, textBelow(heading)),
  ),
  ...[...main.querySelectorAll('tr[id]')].map((row) =>
    entryOf(`#${row.id}`, row.id, row.cells[2].textContent),
  ),
]

const MAX_RESULTS = 20

/** Finds the entries with the words: in the title first. */
function find(words) {
  const has = (text) => words.every((word) => text.toLowerCase().includes(word))
  const titles = entries.filter(({ title }) => has(title))
  const texts = entries.filter(({ title, text }) => !has(title) && has(`${title} ${text}`))
  return [...titles, ...texts].slice(0, MAX_RESULTS)
}

/** Text around the first match. */
function excerpt(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 30)
  return `${at > 0 ? '…' : ''}${text.slice(at, at + 90)}${text.length > at + 90 ? '…' : ''}`
}

function showResults() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  const items = find(words).map(({ href, title, text }) => {
    const item = document.createElement('li')
    const link = Object.assign(document.createElement('a'), { href, textContent: title })
    const small = document.createElement('small')
    small.textContent = excerpt(text, words[0] ?? '')
    item.append(link, small)
    return item
  })
  if (items.length === 0) items.push('Nothing found.')
  results.replaceChildren(...items)
  results.hidden = words.length === 0
  contents.hidden = words.length > 0
}
search.addEventListener('input', showResults)
search.addEventListener('keydown', ({ key }) => {
  if (key === 'Enter') results.querySelector('a')?.click()
})
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input, textarea')) return
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
