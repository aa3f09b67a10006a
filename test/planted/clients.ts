import type { Plant } from '../../tools/plant.ts'

/** Faults of the clients, the server for assistants, the examples and the calculator of the page. */

export const environment = { CLIENTS: 'all' }

const typescript = 'clients/typescript/src/'
const python = 'clients/python/src/investment_data/'
const mcp = 'clients/mcp/src/'
const FAULTS = ['test/clients/fault-table.test.ts', 'test/typescript-client/lists.test.ts']
const MCP = ['test/clients/mcp.test.ts']

export const plants: Plant[] = [
  {
    name: 'a copy with a cursor that the service rejects does not start again',
    file: `${typescript}errors.ts`,
    search: "errors.some(({ code }) => code === 'invalid_cursor')",
    replace: "errors.some(({ code }) => code === 'invalid_limit')",
    tests: ['test/typescript-client/copies.test.ts', 'test/typescript-client/store.test.ts'],
  },
  {
    name: 'TypeScript: 429 is not repeated',
    file: `${typescript}http.ts`,
    search: 'new Set([429, 500,',
    replace: 'new Set([500,',
    tests: FAULTS,
  },
  {
    name: 'TypeScript: a long Retry-After is waited for',
    file: `${typescript}http.ts`,
    search: 'attempts >= this.#attempts || retryAfterMs > this.#maxDelayMs',
    replace: 'attempts >= this.#attempts',
    tests: FAULTS,
  },
  {
    name: 'TypeScript: rounded decimals are accepted',
    file: `${typescript}http.ts`,
    search: String.raw`/;\s*IEEE754Compatible\s*=\s*"?true\b/i`,
    replace: '/./',
    tests: ['test/typescript-client/lists.test.ts', 'test/clients/fault-table.test.ts'],
  },
  {
    name: 'TypeScript: headers of an error show an address',
    file: `${typescript}http.ts`,
    search: "['location', 'content-location',",
    replace: "['content-location',",
    tests: ['test/typescript-client/unusable-responses.test.ts', ...FAULTS],
  },
  {
    name: 'Python: 503 is repeated after the longest delay',
    file: `${python}_http.py`,
    search: 'if last or retry_after > self._retry.max_delay:',
    replace: 'if last:',
    tests: FAULTS,
  },
  {
    name: 'Python: an error has the code of a stranger',
    file: `${python}_http.py`,
    search: 'if _CODE.fullmatch(code) and safe(code) == code:',
    replace: 'if code:',
    tests: ['test/typescript-client/unusable-responses.test.ts', ...FAULTS],
  },
  {
    name: 'Python: an error has an encoded token',
    file: `${python}_safe_text.py`,
    search: '(token in text or token in decoded)',
    replace: '(token in text)',
    tests: ['test/typescript-client/unusable-responses.test.ts', ...FAULTS],
  },
  {
    name: 'Python: sums are rounded',
    file: `${python}_decimals.py`,
    search: 'Context(prec=1000, traps=[Inexact])',
    replace: 'Context(prec=28, traps=[])',
    tests: ['test/typescript-client/positions.test.ts'],
  },
  {
    name: 'Python: a row lacks a field',
    file: `${python}_response_rows.py`,
    search: `        if not isinstance(value, types):
            raise`,
    replace: `        if not isinstance(value, types) and value is not _MISSING:
            raise`,
    tests: ['test/typescript-client/unusable-responses.test.ts', 'test/clients/python.test.ts'],
  },
  {
    name: 'Python: pages of a limit of 0 never end',
    file: `${python}_response_rows.py`,
    search: 'or body["limit"] == 0:',
    replace: 'or body["limit"] < 0:',
    tests: ['test/typescript-client/unusable-responses.test.ts', 'test/clients/python.test.ts'],
  },
  {
    name: 'an answer to an assistant has no limit',
    file: `${mcp}answer.ts`,
    search: 'if (bytes > MAX_TABLE_BYTES) break',
    replace: 'if (bytes > 1_000 * MAX_TABLE_BYTES) break',
    tests: MCP,
  },
  {
    name: 'a column that is unknown in all rows disappears',
    file: `${mcp}answer.ts`,
    search: 'isKnown.get(column) === false',
    replace: "isKnown.get(column) === false && column === ''",
    tests: MCP,
  },
  {
    name: 'titles of types that state a position are added',
    file: `${mcp}tools/summarize.ts`,
    search: "(effect === '+' || effect === '-')",
    replace: "(effect !== undefined || effect === '-')",
    tests: MCP,
  },
  {
    name: 'no note says that sums of connections are not added',
    file: `${mcp}tools/summarize.ts`,
    search: 'connections.length > 1 && rows > 0',
    replace: 'connections.length > 1_000 && rows > 0',
    tests: [...MCP, 'test/clients/mcp-questions.test.ts'],
  },
  {
    name: 'a reversed dividend is income',
    file: 'clients/typescript/examples/ghostfolio.ts',
    search: '  refuseSigns(rows)\n',
    replace: '  if (rows.length < 0) refuseSigns(rows)\n',
    tests: ['test/clients/example-amounts.test.ts'],
  },
  {
    name: 'beancount: a price is as the institution quotes it',
    file: 'clients/python/examples/beancount_file.py',
    search: 'abs(Fraction(row["amount"]) / Fraction(row["titles"]))',
    replace: 'abs(Fraction(row["price"] or 0))',
    tests: ['test/clients/example-amounts.test.ts', 'test/clients/beancount.test.ts'],
  },
  {
    name: 'half a cent is rounded down',
    file: 'clients/examples/fraction.ts',
    search: '* 200n + this.under)',
    replace: '* 200n + this.under - 1n)',
    tests: ['test/typescript-client/sandbox.test.ts', 'test/clients/examples.test.ts'],
  },
  {
    name: 'the calculator of the page takes purchases before related sales',
    file: 'src/http/docs-page/calculator.js',
    search: "(row.relatedTransaction && effectOf(row) === '-' ? 0 : 1)",
    replace: "(row.relatedTransaction && effectOf(row) === '-' ? 1 : 0)",
    tests: ['test/seeds/seeds.test.ts', 'test/clients/browser/docs-sandbox.test.ts'],
  },
]
