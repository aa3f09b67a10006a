import { EXACT_JSON } from '../representation.ts'
import type { Document } from './document.ts'

/** Stands for the address of the service where no setting has it. The page /docs replaces it. */
export const PLACEHOLDER = 'https://HOST'

const PRINTED: Record<string, string[]> = {
  transactions: ['operationDateDay', 'type', 'amount'],
  'assets-transfer': ['name', 'titles', 'amount'],
}

/**
 * Adds samples to each operation as `x-codeSamples`, the name that Redoc and Scalar read, too. They read
 * both tokens from the environment and keep the digits of decimals.
 */
export function addCodeSamples(document: Document): void {
  const [server] = document.servers
  const address = server?.url.startsWith('http') ? server.url : PLACEHOLDER
  for (const [path, { get }] of Object.entries(document.paths)) {
    const fields = PRINTED[path.slice(path.lastIndexOf('/') + 1)]
    if (get && fields) get['x-codeSamples'] = samples(address, path, fields)
  }
}

function samples(address: string, path: string, fields: string[]) {
  const isPaged = fields === PRINTED.transactions
  const url = (token: string) =>
    `${address}${path.replace('{token}', token)}${isPaged ? '?limit=100' : ''}`
  const print = (row: string) => fields.map((field) => `${row}${field}`).join(', ')
  const curl = `curl --fail-with-body --compressed --header "Authorization: Bearer $APP_TOKEN" \\
  "${url('$CONNECTION_TOKEN')}"`
  // Decimals are strings in this media type: JSON.parse() cannot round them, and Python adds no exponent.
  const typescript = `const { APP_TOKEN, CONNECTION_TOKEN } = process.env
const url = \`${url(`\${CONNECTION_TOKEN}`)}\`
const response = await fetch(url, {
  headers: {
    authorization: \`Bearer \${APP_TOKEN}\`,
    accept: '${EXACT_JSON}', // decimals as strings
  },
})
if (!response.ok) throw new Error(await response.text())
const ${isPaged ? '{ items }' : 'items'} = await response.json()
for (const item of items) console.log(${print('item.')})`
  const python = `import json, os, urllib.request

url = f"${url("{os.environ['CONNECTION_TOKEN']}")}"
headers = {
    "Authorization": f"Bearer {os.environ['APP_TOKEN']}",
    "Accept": "${EXACT_JSON}",  # decimals as strings
}
with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
    body = json.load(response)
for item in body${isPaged ? '["items"]' : ''}:
    print(${fields.map((field) => `item["${field}"]`).join(', ')})`
  return [
    { lang: 'Shell', label: 'curl', source: curl },
    { lang: 'TypeScript', label: 'TypeScript', source: typescript },
    { lang: 'Python', label: 'Python', source: python },
  ]
}
