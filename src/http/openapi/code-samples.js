// @ts-check
/** Stands for the address of the service where no setting has it. The page /docs replaces it. */
export const PLACEHOLDER = 'https://HOST'

/** Names of the packages in clients/. */
const NPM_PACKAGE = '@investment-data/client'
const PYTHON_MODULE = 'investment_data'

/**
 * Method of the TypeScript client for each list, and fields to print.
 * @type {Record<string, { method: string; fields: string[] }>}
 */
const LISTS = {
  'portfolios/transactions': {
    method: 'portfolioTransactions',
    fields: ['operationDateDay', 'type', 'amount'],
  },
  'accounts/transactions': {
    method: 'accountTransactions',
    fields: ['operationDateDay', 'type', 'amount'],
  },
  'assets-transfer': { method: 'transferOrders', fields: ['name', 'titles', 'amount'] },
}

/**
 * Writes the programs of an operation. They read both tokens from the environment, keep all digits, and
 * print the error of the service. The server and the page call it.
 * @param {string} address
 * @param {string} path
 * @param {Record<string, string>} [query]
 * @param {Record<string, string>} [headers]
 */
export function codeSamples(address, path, query = {}, headers = {}) {
  const list = LISTS[path.slice(path.indexOf('}/') + 2)]
  if (list === undefined) return []
  const { from, to, limit } = query
  const trace = headers['X-Client-Trace-ID']
  const isPaged = list.method !== 'transferOrders'
  const search = String(new URLSearchParams(query))
  const url = address + path.replace('{token}', '$CONNECTION_TOKEN') + (search && `?${search}`)
  const curl = [
    'curl --fail-with-body --compressed',
    '--header "Authorization: Bearer $APP_TOKEN"',
    ...Object.entries(headers).map(
      ([name, value]) => `--header ${shellQuote(`${name}: ${value}`)}`,
    ),
    `"${url}"`,
  ]

  const days = Object.entries({ from, to }).filter(([, day]) => day)
  const range = days.map(([name, day]) => `${name}: ${quote(day)}`).join(', ')
  const call = `${list.method}(${range && `{ ${range} }`})`
  const typescript = `import { InvestmentData } from "${NPM_PACKAGE}"

const { APP_TOKEN = "", CONNECTION_TOKEN = "" } = process.env
const api = new InvestmentData({
  baseUrl: ${quote(address)},
  token: APP_TOKEN,${limit ? `\n  pageSize: ${number(limit)},` : ''}
})
const connection = api.connection(CONNECTION_TOKEN${trace ? `, { traceId: ${quote(trace)} }` : ''})
try {${isPaged ? '\n  // Reads all pages. Each decimal is a string.' : ''}
  for ${isPaged ? 'await (const row of' : '(const row of await'} connection.${call}) {
    console.log(${list.fields.map((field) => `row.${field}`).join(', ')})
  }
} catch (error) {
  console.error(String(error))
  process.exitCode = 1
}`

  const pythonRange = days.map(([name, day]) => `${name === 'from' ? 'from_' : name}=${quote(day)}`)
  const method = list.method.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)
  const python = `import os, sys
from ${PYTHON_MODULE} import InvestmentData, InvestmentDataError

api = InvestmentData(
    ${quote(address)},
    os.environ["APP_TOKEN"],${limit ? `\n    page_size=${number(limit)},` : ''}
)
connection = api.connection(os.environ["CONNECTION_TOKEN"]${trace ? `, trace_id=${quote(trace)}` : ''})
try:${isPaged ? '\n    # Reads all pages. Each decimal is a Decimal.' : ''}
    for row in connection.${method}(${pythonRange.join(', ')}):
        print(${list.fields.map((field) => `row["${field}"]`).join(', ')})
except InvestmentDataError as error:
    sys.exit(str(error))`

  return [
    { lang: 'Shell', label: 'curl', source: curl.join(' \\\n  ') },
    { lang: 'TypeScript', label: 'TypeScript', source: typescript },
    { lang: 'Python', label: 'Python', source: python },
  ]
}

/** Writes text in quotes for TypeScript and Python. */
const quote = (text = '') => JSON.stringify(text)

/** @param {string} text */
const number = (text) => (/^[1-9]\d*$/.test(text) ? text : quote(text))

/** @param {string} text */
const shellQuote = (text) => `'${text.replaceAll("'", "'\\''")}'`
