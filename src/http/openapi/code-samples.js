// @ts-check
/** Stands for the address of the service where no setting has it. The page /docs replaces it. */
export const PLACEHOLDER = 'https://HOST'

/** Names of the packages in clients/. */
const NPM_PACKAGE = '@investment-data/client'
const PYTHON_MODULE = 'investment_data'

/**
 * Commands that install the clients from the files that the operator gives out. No command names a package of a
 * registry: until the owner has reserved the names there, anybody could publish another package under them. The guide and the READMEs of
 * the clients have the same lines.
 */
export const INSTALL = {
  npm: 'npm install ./investment-data-client-VERSION.tgz',
  pip: 'pip install ./investment_data_client-VERSION-py3-none-any.whl',
}

/** Names of the files in which a reader saves the samples. */
export const FILES = { node: 'list-rows.mjs', python: 'list_rows.py' }

/**
 * What the samples do with a list. `list` and `copy` are functions of the TypeScript client, and properties of its results.
 * @typedef {{ list: string; exported?: string; copy: string; texts: string[]; decimals: string[] }} List
 * @type {Record<string, List>}
 */
const LISTS = {
  'portfolios/transactions': {
    list: 'portfolioTransactions',
    exported: 'exportPortfolioTransactions',
    copy: 'portfolio',
    texts: ['operationDateDay', 'type'],
    decimals: ['amount'],
  },
  'accounts/transactions': {
    list: 'accountTransactions',
    exported: 'exportAccountTransactions',
    copy: 'account',
    texts: ['operationDateDay', 'type'],
    decimals: ['amount'],
  },
  'assets-transfer': {
    list: 'transferOrders',
    copy: 'orders',
    texts: ['name'],
    decimals: ['titles', 'amount'],
  },
}

/**
 * Values of the form of an operation, and what the samples of the clients do with them.
 * @typedef {{
 *   address: string
 *   names: List
 *   from: string | undefined
 *   to: string | undefined
 *   limit: string | undefined
 *   trace: string | undefined
 *   action: 'rows' | 'csv' | 'ndjson' | 'copy'
 *   notes: string[]
 * }} Call
 */

/**
 * Writes the programs of an operation. They read both tokens from the environment, keep all digits, and print the error of
 * the service. The server and the page call it.
 * @param {string} address
 * @param {string} path
 * @param {Record<string, string>} [query]
 * @param {Record<string, string>} [headers]
 */
export function codeSamples(address, path, query = {}, headers = {}) {
  const names = LISTS[path.slice(path.indexOf('}/') + 2)]
  if (names === undefined) return []
  const call = callOf(address, names, query, headers)
  return [
    { lang: 'Shell', label: 'curl', source: curlSample(address, path, query, headers) },
    { lang: 'JavaScript', label: 'Node.js', source: nodeSample(call) },
    { lang: 'Python', label: 'Python', source: pythonSample(call) },
  ]
}

/**
 * @param {string} address
 * @param {List} names
 * @param {Record<string, string>} query
 * @param {Record<string, string>} headers
 * @returns {Call}
 */
function callOf(address, names, { from, to, limit, page, since, version }, headers) {
  const action = actionOf(names, since, headers.Accept)
  const notes = []
  const isPage = page !== undefined && Number(page) !== 0
  if (action === 'rows' && names.exported) {
    if (limit === undefined) notes.push('The client reads all pages.')
    else if (isPage) notes.push('The client reads all pages: it has no page number, and no limit.')
    else notes.push('These are the newest rows.')
    if (version) notes.push('It sends `version` itself: all pages are of one version of the data.')
  }
  if (action === 'copy')
    notes.push('The client sends `since` and stores the cursor: a second run reads the changes.')
  if (headers['If-None-Match'])
    notes.push('The client has no If-None-Match: a copy asks only for what has changed.')
  const trace = headers['X-Client-Trace-ID']
  return { address, names, from, to, limit: isPage ? undefined : limit, trace, action, notes }
}

/**
 * @param {List} names
 * @param {string | undefined} since
 * @param {string | undefined} accept
 * @returns {Call['action']}
 */
function actionOf(names, since, accept = '') {
  if (since) return 'copy'
  if (names.exported && accept.includes('csv')) return 'csv'
  if (names.exported && accept.includes('ndjson')) return 'ndjson'
  return 'rows'
}

/**
 * @param {string} address
 * @param {string} path
 * @param {Record<string, string>} query
 * @param {Record<string, string>} headers
 */
function curlSample(address, path, query, headers) {
  const search = String(new URLSearchParams(query))
  const url = address + path.replace('{token}', '$CONNECTION_TOKEN') + (search && `?${search}`)
  const lines = [
    'curl --fail-with-body --compressed',
    '--header "Authorization: Bearer $APP_TOKEN"',
    ...Object.entries(headers).map(
      ([name, value]) => `--header ${shellQuote(`${name}: ${value}`)}`,
    ),
  ]
  const ending = /csv|ndjson/.exec(headers.Accept ?? '')?.[0]
  if (ending) lines.push(`--output rows.${ending}`)
  lines.push(`"${url}"`)
  return lines.join(' \\\n  ')
}

/** @param {Call} call */
function nodeSample({ address, names, from, to, limit, trace, action, notes }) {
  const options = Object.entries({ from, to })
    .filter(([, day]) => day)
    .map(([name, day]) => `${name}: ${quote(day)}`)
  if (limit && action === 'rows') options.push(`limit: ${number(limit)}`)
  const range = options.length > 0 ? `{ ${options.join(', ')} }` : ''
  const fields = [...names.texts, ...names.decimals].map((field) => `row.${field}`).join(', ')
  const comments = notes.map((note) => `// ${note}`)

  const imports = []
  const classes = ['InvestmentData']
  const body = []
  if (action === 'csv') {
    imports.push('import { createWriteStream } from "node:fs"')
    imports.push('import { pipeline } from "node:stream/promises"')
    body.push(
      `await pipeline(connection.${names.exported}Csv(${range}), createWriteStream("rows.csv"))`,
    )
  } else if (action === 'copy') {
    imports.push('import { DatabaseSync } from "node:sqlite"')
    classes.push('SqliteStore')
    body.push('// node:sqlite needs Node.js 22.13 or later.')
    body.push('const store = new SqliteStore(new DatabaseSync("copy.db"), "user 1")')
    body.push('const copies = await connection.syncTransactions(store)')
    body.push(`console.log(copies.${names.copy}.inserted, "new rows")`)
    body.push(`for (const row of store.${names.list}()) {`)
    body.push(`  console.log(${fields})`, '}')
  } else {
    const name = action === 'ndjson' ? names.exported : names.list
    const call = `connection.${name}(${range})`
    const isStream = names.exported !== undefined
    body.push(
      isStream ? `for await (const row of ${call}) {` : `for (const row of await ${call}) {`,
    )
    body.push(`  console.log(${fields})`, '}')
  }
  return `// Save as ${FILES.node}, and run: node ${FILES.node}
${[...imports, `import { ${classes.join(', ')} } from "${NPM_PACKAGE}"`].join('\n')}

const { APP_TOKEN, CONNECTION_TOKEN } = process.env
if (!APP_TOKEN || !CONNECTION_TOKEN) {
  console.error("Set the variables APP_TOKEN and CONNECTION_TOKEN.")
  process.exit(1)
}
try {
  const api = new InvestmentData({ baseUrl: ${quote(address)}, token: APP_TOKEN })
  const connection = api.connection(CONNECTION_TOKEN${trace ? `, { traceId: ${quote(trace)} }` : ''})
${indent(2, [...comments, ...body])}
} catch (error) {
  console.error(String(error))
  process.exitCode = 1
}`
}

/** @param {Call} call */
function pythonSample({ address, names, from, to, limit, trace, action, notes }) {
  const options = Object.entries({ from_: from, to })
    .filter(([, day]) => day)
    .map(([name, day]) => `${name}=${quote(day)}`)
  if (limit && action === 'rows') options.push(`limit=${number(limit)}`)
  const range = options.join(', ')
  const texts = names.texts.map((field) => `row["${field}"]`)
  const decimals = names.decimals.map((field) => `digits(row["${field}"])`)
  const fields = [...texts, ...decimals].join(', ')
  const comments = notes.map((note) => `# ${note}`)

  const modules = ['os', 'sys']
  const classes = ['InvestmentData', 'InvestmentDataError']
  const body = []
  if (action === 'csv') {
    body.push('with open("rows.csv", "wb") as file:')
    body.push(`    for part in connection.${snakeCase(names.exported)}_csv(${range}):`)
    body.push('        file.write(part)')
  } else if (action === 'copy') {
    modules.unshift('sqlite3')
    classes.push('SqliteStore')
    body.push('store = SqliteStore(sqlite3.connect("copy.db"), "user 1")')
    body.push('copies = connection.sync_transactions(store)')
    body.push(`print(copies.${names.copy}.inserted, "new rows")`)
    body.push(`for row in store.${snakeCase(names.list)}():`)
    body.push(`    print(${fields})`)
  } else {
    const name = action === 'ndjson' ? names.exported : names.list
    body.push(`for row in connection.${snakeCase(name)}(${range}):`)
    body.push(`    print(${fields})`)
  }
  const digits = `
def digits(amount):
    """Writes every digit: str() may use an exponent."""
    return None if amount is None else format(amount, "f")

`
  return `# Save as ${FILES.python}, and run: python3 ${FILES.python}
import ${modules.sort().join(', ')}
from ${PYTHON_MODULE} import ${classes.join(', ')}
${action === 'csv' ? '' : digits}
app_token, token = os.environ.get("APP_TOKEN"), os.environ.get("CONNECTION_TOKEN")
if not app_token or not token:
    sys.exit("Set the variables APP_TOKEN and CONNECTION_TOKEN.")
try:
    api = InvestmentData(${quote(address)}, app_token)
    connection = api.connection(token${trace ? `, trace_id=${quote(trace)}` : ''})
${indent(4, [...comments, ...body])}
except (InvestmentDataError, ValueError) as error:
    sys.exit(str(error))`
}

/**
 * @param {number} spaces
 * @param {string[]} lines
 */
const indent = (spaces, lines) => lines.map((line) => ' '.repeat(spaces) + line).join('\n')

const snakeCase = (name = '') => name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)

/** Writes text in quotes for JavaScript and Python. */
const quote = (text = '') => JSON.stringify(text)

/** @param {string} text */
const number = (text) => (/^[1-9]\d*$/.test(text) ? text : quote(text))

/** @param {string} text */
const shellQuote = (text) => `'${text.replaceAll("'", "'\\''")}'`
