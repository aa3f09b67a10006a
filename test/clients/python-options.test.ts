import t from 'tap'
import { PYTHON, pythonEnvironment } from '../support/clients/python.ts'
import { needsProgram, run } from '../support/programs.ts'

/** Invalid options end in an error with a sentence when the client is constructed. */
await needsProgram(t, PYTHON, 'python3')

/** Prints the error of each expression. */
const PRINT_ERRORS = `
import json, math, sys
from datetime import date, datetime, timezone
import sqlite3
from investment_data import AsyncInvestmentData, InvestmentData, Retry, SqliteStore
def api(**options): return InvestmentData("http://127.0.0.1:3000", "secret-token", **options)
connection = api().connection("token")
for expression in json.load(sys.stdin):
    try:
        print(json.dumps(f"no error: {eval(expression)}"))
    except (TypeError, ValueError) as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
`

async function errorsOf(expressions: string[]): Promise<string[]> {
  const program = PRINT_ERRORS.replace('json.load(sys.stdin)', JSON.stringify(expressions))
  const printed = await run(PYTHON, ['-c', program], { env: pythonEnvironment })
  return printed
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

t.test('wrong numbers', async (t) => {
  const wrong = ['math.nan', 'math.inf', '-1', '10**400', '"5"', '{}', 'True']
  const options: [string, string][] = [
    ['api(timeout=VALUE)', 'timeout must be a number'],
    ['api(call_timeout=VALUE)', 'call_timeout must be a number'],
    ['AsyncInvestmentData("http://a", "b", timeout=VALUE)', 'timeout must be a number'],
    [
      'AsyncInvestmentData("http://a", "b", max_connections=VALUE)',
      'max_connections must be an in',
    ],
    ['api(page_size=VALUE)', 'page_size must be an integer'],
    ['Retry(attempts=VALUE)', 'attempts must be an integer'],
    ['Retry(base_delay=VALUE)', 'base_delay must be a number'],
    ['Retry(max_delay=VALUE)', 'max_delay must be a number'],
  ]
  const cases = options.flatMap(([expression, message]) =>
    wrong.map((value) => [expression.replace('VALUE', value), message] as const),
  )
  const errors = await errorsOf(cases.map(([expression]) => expression))
  for (const [index, [expression, message]] of cases.entries())
    t.match(errors[index], new RegExp(`^(Type|Value)Error: ${message}`), expression)
  const others = ['api(timeout=None)', 'api(timeout=0)', 'api(page_size=0)', 'api(page_size=10001)']
  for (const error of await errorsOf(others)) t.match(error, /^(Type|Value)Error: \w+ must be an? /)
})

t.test('wrong types of the other options and parameters', async (t) => {
  const cases: [string, string][] = [
    ['api(retry=None)', 'TypeError: retry must be of the type Retry'],
    ['api(retry=5)', 'TypeError: retry must be of the type Retry'],
    ['api(ssl_context=True)', 'TypeError: ssl_context must be of the type SSLContext'],
    ['api(on_attempt=1)', 'TypeError: on_attempt must be a function'],
    ['InvestmentData("http://a", None)', 'TypeError: token must be a text'],
    ['InvestmentData("http://a", b"b")', 'TypeError: token must be a text'],
    ['InvestmentData(None, "b")', 'TypeError: base_url must be a text'],
    [
      'InvestmentData("http://secret-token@a", "b")',
      'ValueError: base_url must be an http or https URL without credentials, in ASCII',
    ],
    ...['', '/', '/queries/connections'].map((path): [string, string] => [
      `InvestmentData("http://secret-token/api/v1${path}", "b")`,
      'ValueError: base_url must not have the path /api/v1: the client adds it',
    ]),
    ['SqliteStore(sqlite3.connect(":memory:"), None)', 'TypeError: connection must be a text'],
    ['api().connection(None)', 'TypeError: the token of a connection must be a text'],
    ...['', '.', '..', '\\ud800'].map((token): [string, string] => [
      `api().connection("${token}")`,
      "ValueError: the token of a connection must be a text other than '.' and '..'",
    ]),
    [
      'api().connection("a", trace_id="a b")',
      'ValueError: trace_id must be 1 to 128 visible ASCII characters',
    ],
    ...['datetime(2025, 3, 14)', 'datetime.now(timezone.utc)', '20250314', 'b"2025-03-14"'].map(
      (value): [string, string] => [
        `connection.portfolio_transactions(from_=${value})`,
        'TypeError: from_ must be a date, or a text such as 2025-03-14',
      ],
    ),
    ...['0', '1.5', '"20"', 'True'].map((limit): [string, string] => [
      `connection.account_transactions(limit=${limit})`,
      limit === '0'
        ? 'ValueError: limit must be an integer from 1 to 2147483647'
        : 'TypeError: limit must be an integer',
    ]),
    [
      'connection.export_account_transactions_csv(to=datetime(2025, 3, 14))',
      'TypeError: to must be a date, or a text such as 2025-03-14',
    ],
  ]
  const errors = await errorsOf(cases.map(([expression]) => expression))
  for (const [index, [expression, error]] of cases.entries())
    t.equal(errors[index], error, expression)
})
