/** Search over the sections, operations, fields, errors and codes of the page. Its index is made when it is first used. */
import { breakable, create, main, nav } from './dom.js'
import { contents, phone, showTarget } from './navigation.js'
import { corrected, READER_WORDS, STOP_WORDS, SYNONYMS, stem } from './search-words.js'

const search = nav.querySelector('input')
const results = nav.querySelector('#results')
const found = nav.querySelector('#found')

const MAX_RESULTS = 20

// Index

const BLOCKS = 'dd, div, dt, h4, label, li, p, pre, summary, td, th'

/** Text of an element, with a blank between its blocks. A word may have several elements, so it has no blank there. */
function textOf(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
  let text = ''
  let last
  while (walker.nextNode()) {
    const { parentElement } = walker.currentNode
    if (parentElement.closest('.bar, button, noscript')) continue
    const block = parentElement.closest(BLOCKS)
    if (block !== last) text += ' '
    last = block
    text += walker.currentNode.textContent
  }
  return text
}

/** Text from a heading to the next one. */
function textBelow(heading) {
  const texts = []
  for (let next = heading.nextElementSibling; next; next = next.nextElementSibling) {
    if (next.matches('h1, h2, h3, h4, h5, section, .fields')) break
    if (next.matches('form')) continue
    // An operation has an entry of its own. The heading above has its name.
    if (next.matches('.operation')) {
      texts.push(textOf(next.querySelector('summary')))
      continue
    }
    // Each field and each code has an entry.
    if (!next.querySelector('tr[id]')) texts.push(textOf(next))
  }
  return texts.join(' ')
}

/** Sections explain a subject, so they come before fields and errors that only name it. */
const WEIGHTS = { section: 2.5, error: 1, operation: 1, field: 1 }

const entryOf = (type, id, title, text, status = '') => ({
  id,
  title,
  status,
  weight: WEIGHTS[type],
  text: text.replace(/\s+/g, ' ').trim(),
  names: meaningOf(nameOf(title)).map(stem),
})

/** Name of a field or a value without that of its type. */
const nameOf = (title) => title.slice(title.lastIndexOf('.') + 1)

function operationEntry(operation) {
  const parts = operation.querySelectorAll('.route, .operation > p, .field')
  const text = [...parts].map(textOf).join(' ')
  return entryOf('operation', operation.id, operation.querySelector('h3').textContent, text)
}

/** The status of an error is the best match of its number. */
function headingEntry(heading) {
  const text = textBelow(heading)
  const [status] = /^\d{3}(?= )/.exec(text.trim()) ?? []
  const type = heading.matches('h1, h2') ? 'section' : 'error'
  // The rest of a heading tells what it is.
  const title = heading.querySelector('a')?.firstChild.textContent ?? heading.textContent
  return entryOf(type, heading.id, title, text, status)
}

function rowEntry(row) {
  const [first, ...others] = row.cells
  const title = row.id.includes('.') ? row.id : first.textContent
  return entryOf('field', row.id, title, others.map(textOf).join(' '))
}

function readEntries() {
  return [
    ...[...main.querySelectorAll('.operation')].map(operationEntry),
    ...[...main.querySelectorAll(':is(h1, h2, h3, h4, h5)[id]')].map(headingEntry),
    ...[...main.querySelectorAll('tr[id]')].map(rowEntry),
  ]
}

/** Words of names are found, too: `operationDateDay` has the words operation, date and day. */
function tokenize(text) {
  const words = text.match(/[\p{L}\p{N}_]+/gu) ?? []
  return words.flatMap((word) => {
    const parts = word.split(/_|(?<=[a-z])(?=[A-Z])/)
    return parts.length > 1 ? [word, ...parts] : [word]
  })
}

/** Words of a text that say something about its subject. */
const meaningOf = (text) => tokenize(text).filter((word) => !STOP_WORDS.has(word.toLowerCase()))

/** The index, when it is there, and before. */
let index
/** Words of the page and of its readers. */
let known
let loading
let attempt = 0

/** The service has this file from the package minisearch. */
const LIBRARY = './minisearch.js'

async function readIndex(attempt) {
  const { default: MiniSearch } = await import(attempt > 0 ? `${LIBRARY}?${attempt}` : LIBRARY)
  const made = new MiniSearch({
    fields: ['status', 'title', 'text'],
    storeFields: ['title', 'text', 'weight', 'names'],
    tokenize,
    processTerm: (term) => (STOP_WORDS.has(term.toLowerCase()) ? null : stem(term)),
    searchOptions: {
      boost: { status: 50, title: 4 },
      prefix: (term) => term.length > 2,
    },
  })
  const entries = readEntries()
  made.addAll(entries)
  const texts = entries.map(({ title, text }) => `${title} ${text}`.toLowerCase())
  known = new Set([...READER_WORDS, ...tokenize(texts.join(' '))])
  return made
}

/** Makes the index once. After an error, the next call tries again: browsers remember a failed import by its address. */
async function load() {
  loading ??= readIndex(attempt)
  try {
    index = await loading
  } catch (error) {
    loading = undefined
    attempt += 1
    throw error
  }
}

// Query

/** A word, or one of its synonyms. The word itself weighs more. */
function alternatives(word) {
  const synonyms = SYNONYMS.get(stem(word)) ?? []
  const others = synonyms.map((synonym) => ({
    combineWith: 'AND',
    queries: tokenize(synonym),
    boostTerm: () => 0.7,
  }))
  return { combineWith: 'OR', queries: [word, ...others] }
}

/** An entry whose whole name is in the query is the better answer, the more words of the query it has. */
function nameBoost(names, words) {
  const stems = words.map(stem)
  const synonyms = stems.flatMap((each) => SYNONYMS.get(each) ?? []).flatMap(tokenize)
  const all = new Set([...stems, ...synonyms.map(stem)])
  if (!names.every((name) => all.has(name))) return 1
  return 1 + (2 * names.length) / words.length
}

/** Letters and digits of a name: `spin-off` is SPINOFF. */
const letters = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')

/** Finds the entries with all words first, then those with some of them. Before them come those with this name. */
function find(made, query) {
  const text = query.toLowerCase().replaceAll('-', ' ')
  const spelt = text.replace(/[\p{L}\p{N}_]+/gu, (word) => corrected(word, known))
  const words = meaningOf(replacePhrases(spelt))
  if (words.length === 0) return []
  const queries = words.map(alternatives)
  const boostDocument = (_id, _term, { weight, names }) => weight * nameBoost(names, words)
  const all = made.search({ combineWith: 'AND', queries }, { boostDocument })
  const ids = new Set(all.map(({ id }) => id))
  const some = made.search({ combineWith: 'OR', queries }, { boostDocument })
  const ranked = [...all, ...some.filter(({ id }) => !ids.has(id))]
  const named = letters(spelt)
  const rank = ({ title }) => {
    if (stem(letters(nameOf(title))) === stem(named)) return 2
    return letters(title).startsWith(named) ? 1 : 0
  }
  return ranked.sort((a, b) => rank(b) - rank(a)).slice(0, MAX_RESULTS)
}

/** Synonyms of several words, such as `getting started`, become one word. */
function replacePhrases(text) {
  let replaced = text
  for (const phrase of SYNONYMS.keys())
    if (phrase.includes(' ')) replaced = replaced.replaceAll(phrase, SYNONYMS.get(phrase).join(' '))
  return replaced
}

// Results

/** Whole words around the first match. */
function excerpt(text, words) {
  const lower = text.toLowerCase()
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0)
  const at = places.length > 0 ? Math.min(...places) : 0
  const start = text.lastIndexOf(' ', Math.max(0, at - 30)) + 1
  const end = text.indexOf(' ', at + 60)
  return (start > 0 ? '… ' : '') + (end < 0 ? text.slice(start) : `${text.slice(start, end)} …`)
}

/** Places in names where lines break. */
const NAME_PARTS = /(?<=[._])/

function resultItem({ id, title, text, terms }) {
  const link = create(
    'a',
    { href: `#${id}` },
    ...breakable(title, NAME_PARTS),
    create('small', {}, excerpt(text, terms)),
  )
  return create('li', {}, link)
}

/** Shows the results of the query: at once, except for the first query, which waits for the index. */
async function showResults() {
  const text = search.value.trim()
  if (index === undefined) {
    try {
      await load()
    } catch {
      found.textContent = 'The search is not available: type again when the network works.'
      return
    }
    // The reader may have typed more meanwhile.
    if (text !== search.value.trim()) return
  }
  const items = text === '' ? [] : find(index, text)
  results.replaceChildren(...items.map(resultItem))
  const noun = items.length === 1 ? 'result' : 'results'
  found.textContent = text === '' ? '' : `${items.length || 'No'} ${noun}`
  results.hidden = text === ''
  contents.hidden = text !== ''
}

search.addEventListener('focus', () => load().catch(() => {}))
search.addEventListener('input', showResults)
nav.addEventListener('keydown', async (event) => {
  if (event.key === 'Enter' && event.target === search) {
    await showResults()
    results.querySelector('a')?.click()
    return
  }
  const links = [search, ...results.querySelectorAll('a')]
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  const at = links.indexOf(event.target)
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
