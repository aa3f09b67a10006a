/** Stories of the sample data: requests with known results, in a service that has the demo tokens. */
import { chronological, dayOf, walk, yearsOf } from './calculator.js'
import { addButton, breakable, create, main } from './dom.js'
import { showTarget } from './navigation.js'
import { base } from './settings.js'

/** Decimals as text, so that the calculator has all digits. */
const EXACT_JSON = 'application/json;IEEE754Compatible=true'

const LISTS = ['portfolios/transactions', 'accounts/transactions']

/** Shows the stories below the section Sandbox, if the demo tokens are those of the sample data. */
export async function showStories(demo) {
  const response = await fetch(new URL('stories.json', import.meta.url))
  if (!response.ok) return
  const { appToken, clock, stories, errors } = await response.json()
  if (demo.appToken !== appToken) return
  const items = [
    create('h3', { id: 'stories' }, create('a', { href: '#stories' }, 'Stories')),
    create('p', {}, TEXT),
    ...stories.map((story) => storyItem(story, { appToken, clock })),
    create('h3', { id: 'stories-of-errors' }, 'Stories of errors'),
    ...errors.map(errorItem),
  ]
  main.querySelector('#sandbox').parentElement.append(...items)
  if (items.some(({ id }) => `#${id}` === location.hash)) showTarget()
}

const TEXT =
  'Each of these connections has an event that programs get wrong. “Send request” reads its two lists, computes the ' +
  'positions, the gains by FIFO and the dividends from their rows, and compares them with the results that are known.'

/** Requests of a story, and what they returned. */
function storyItem({ connection, event, mistake, states }, { appToken, clock }) {
  const item = newItem(connection, event, mistake ? `What goes wrong: ${mistake}.` : '')
  item.onSend(async () => {
    const sent = await Promise.all(LISTS.map((list) => send(appToken, connection, list)))
    const requests = sent.map(requestLine)
    const failed = sent.find(({ response }) => !response.ok)
    if (failed) return { isEqual: false, text: 'No rows', elements: requests }
    const day = states.length > 1 ? await dayOfData(appToken, clock) : states[0].day
    const state = states.findLast((each) => each.day <= day) ?? states[0]
    const next = states[states.indexOf(state) + 1]
    const [portfolio, account] = sent.map(({ body }) => body.items)
    const comparison = compare(state, resultsOf(portfolio, account))
    const equal = comparison.filter(({ expected, found }) => expected === found)
    return {
      isEqual: equal.length === comparison.length,
      text: `${equal.length} of ${comparison.length} results are as expected`,
      elements: [
        ...requests,
        comparisonTable(comparison),
        ...(next ? [create('p', {}, nextDayText(next, day))] : []),
        rowTable(portfolio, account),
      ],
    }
  })
  return item.element
}

const nextDayText = (next, day) =>
  `These are the results of ${day}. On ${next.day} the institution changes them: ` +
  'move the sample data with “operator demo advance”, and send the requests again.'

/** Day of the sample data: that of the newest row of a connection which has rows of each day. */
async function dayOfData(appToken, clock) {
  const { body } = await send(appToken, clock, `${LISTS[0]}?limit=1`)
  return dayOf(body.items[0])
}

function errorItem({ id, appToken, connection, event, status, code }) {
  const item = newItem(id, event, `Expected: ${status} ${code}.`)
  item.onSend(async () => {
    const sent = await send(appToken, connection, LISTS[0])
    const found = `${sent.response.status} ${sent.body.code}`
    const comparison = [{ result: 'Error', expected: `${status} ${code}`, found }]
    const isEqual = found === `${status} ${code}`
    return {
      isEqual,
      text: isEqual ? 'The error is as expected' : 'Another response',
      elements: [
        requestLine(sent),
        comparisonTable(comparison),
        create('p', {}, create('a', { href: `#${code}` }, `${code}: cause and remedy`)),
      ],
    }
  })
  return item.element
}

/** Section of a story, with a button. */
function newItem(id, event, text) {
  const output = create('output')
  const send = create('p', { className: 'send' })
  const results = create('div', { className: 'story-results' })
  const element = create(
    'details',
    { className: 'story', id },
    create('summary', {}, create('h4', {}, event), ' ', create('code', {}, id)),
    create('p', {}, text),
    send,
    results,
  )
  const onSend = (run) => {
    addButton(send, 'Send request', async () => {
      output.textContent = 'Sending …'
      try {
        const { isEqual, text, elements } = await run()
        output.textContent = text
        output.className = isEqual ? 'good' : 'error'
        results.replaceChildren(...elements)
      } catch (error) {
        output.textContent = `No response: ${error.message}`
        output.className = 'error'
        results.replaceChildren()
      }
    })
    send.append(output)
  }
  return { element, onSend }
}

async function send(appToken, connection, list) {
  const path = `/api/v1/queries/connections/${connection}/${list}`
  const headers = { Authorization: `Bearer ${appToken}`, Accept: EXACT_JSON }
  const response = await fetch(`${base}${path}`, { headers, cache: 'no-store' })
  return { path, response, body: await response.json() }
}

function requestLine({ path, response }) {
  const code = create('code', {}, 'GET ', ...breakable(path, /(?<=\/)/))
  const status = create('span', { className: response.ok ? 'good' : 'error' }, response.status)
  return create('p', { className: 'request' }, code, ' ', status)
}

/** What the rows say, in the form of a state of seeds/expected.json. */
function resultsOf(portfolio, account) {
  const { holdings, statements } = walk(portfolio)
  const gap = statements.find(({ stated, computed }) => !stated.equals(computed))
  const firstGap = gap && {
    day: dayOf(gap.row),
    expected: gap.stated.decimal,
    found: gap.computed.decimal,
  }
  return { positions: holdings, years: yearsOf(portfolio, account), firstGap }
}

const FIGURES = {
  realisedGain: 'Realised gain',
  dividendsGross: 'Dividends before tax',
  withheldTax: 'Withheld tax',
  dividendsNet: 'Dividends after tax',
}

/** Lists each result that is expected or found. Amounts of zero, except for gains, say nothing. */
function compare(expected, found) {
  const results = new Map()
  for (const [side, state] of Object.entries({ expected, found })) {
    for (const { result, about = '', value } of listed(state)) {
      const key = `${result} ${about}`
      const row = results.get(key) ?? { result, about, expected: 'none', found: 'none' }
      row[side] = value
      results.set(key, row)
    }
  }
  return [...results.values()].filter((row) => !isNothing(row))
}

const isNothing = ({ result, expected, found }) =>
  !result.startsWith(FIGURES.realisedGain) && expected === '0.00' && found === '0.00'

function* listed({ positions, years, firstGap }) {
  for (const { portfolioId, investment, titles } of positions) {
    // Most stories have one investment in one portfolio.
    const about =
      positions.length > 1
        ? `investment ${shortId(investment)}, portfolio ${shortId(portfolioId)}`
        : ''
    for (const [day, value] of Object.entries(titles))
      yield { result: `Shares after ${day}`, about, value }
  }
  for (const [year, figures] of Object.entries(years))
    for (const [name, title] of Object.entries(FIGURES))
      yield { result: `${title} ${year}`, value: figures[name] }
  const value = firstGap ? gapText(firstGap) : 'none'
  yield { result: 'First row that states another position', value }
}

const gapText = ({ day, expected, found }) =>
  `${day}: the row states ${expected} shares, the rows before it make ${found}`

const shortId = (id) => id.slice(0, 8)

function comparisonTable(comparison) {
  const rows = comparison.map(({ result, about = '', expected, found }) => {
    const isEqual = expected === found
    const judgement = create('span', {}, isEqual ? 'equal' : 'differs')
    judgement.className = isEqual ? 'good' : 'error'
    return [[result, create('small', {}, about)], [judgement], [expected], [found]]
  })
  return table('Results', ['Result', 'Equal', 'Expected', 'Found'], rows)
}

function rowTable(portfolio, account) {
  const rows = chronological([...portfolio, ...account]).map((row) => [
    [dayOf(row)],
    [row.portfolioId ? 'portfolio' : 'account'],
    breakable(row.type, /(?<=_)/),
    ...[row.titles, row.amount, row.commission, row.taxes].map((value) => [value ?? '']),
  ])
  const names = ['Day', 'List', 'type', 'titles', 'amount', 'commission', 'taxes']
  return create(
    'details',
    {},
    create('summary', {}, `${rows.length} rows of the responses`),
    table('Rows', names, rows),
  )
}

/** Makes a table that a phone scrolls, also by keys. @param rows texts and elements of each cell */
function table(label, names, rows) {
  const head = names.map((name) => create('th', {}, name))
  const lines = rows.map((cells) =>
    create('tr', {}, ...cells.map((parts) => create('td', {}, ...parts))),
  )
  const body = [create('thead', {}, create('tr', {}, ...head)), create('tbody', {}, ...lines)]
  const attributes = { className: 'scroll', tabIndex: 0, role: 'region', ariaLabel: label }
  return create('div', attributes, create('table', {}, ...body))
}
