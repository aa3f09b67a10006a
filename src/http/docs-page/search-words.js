/** Words of readers that the page calls otherwise. */

/** Words that say nothing about the subject of a query. */
export const STOP_WORDS = new Set(
  (
    'a about all an and any are as at be been between can different difference do does for from get had has have how i if in is it its many ' +
    'me much my no of on one or our should so that the their them there these this to was we what when where ' +
    'which who why will with without you your'
  ).split(' '),
)

const GROUPS = [
  // Each line: words of readers = words of the page.
  'auth, authenticate, authentication, authorization, bearer, login, log in, signin, oauth, jwt, sso, oidc, api key, apikey, password, secret, unauthorized, forbidden, app token, connection token = credentials',
  'revoke, revocation, rotate, rotation, renew, leak, leaked, compromised, stolen = credentials replace',
  'quick start, quickstart, getting started, hello world, tutorial, first call, example request = first request',
  'sdk, library, package, npm, pip, nodejs, node, java script = clients',
  'changelog, release notes, news, whats new, history of changes, last release, latest version, what changed = changelog',
  'timezone, time zone, utc, datetime, timestamp, local time = dates',
  'updated, update, often, poll, polling, interval, refresh, refreshed, stale, latest, fresh, delay, age = freshness',
  'all rows, all pages, all transactions = pagination exports',
  'paging, paginate, offset, next page, page size, infinite = pagination',
  'rate limit, throttle, throttling, quota, too many requests, 429 = rate limits',
  'duplicate, idempotent, idempotency, dedupe = keeping copy',
  'incremental, delta, sync, synchronize, synchronise, synchronisation, synchronization, only new, deleted, removal, changed rows = keeping copy',
  'cors, browser, ajax, frontend = credentials browser',
  'postman, insomnia, bruno, swagger, openapi, collection = openapi',
  'curl, shell, command line = first request',
  'excel, spreadsheet, download, bulk, dump, file, ndjson, jsonl, json lines, parquet = exports',
  'uptime, status page, sla, health, down, downtime, outage, availability = service_unavailable',
  'contact, support, help, email, report a problem = support',
  'rounding error, rounding errors, floating point = exact decimals',
  'float, floating, precision, rounding, number, bignumber, bigdecimal = decimals',
  'fx, forex, conversion, base currency = currencies',
  'cache, caching, not modified, 304, etag = conditional requests',
  'retry, retries, backoff, exponential, resilience = errors retries',
  'timeout, slow, latency, long = timeouts',
  'webhook, notification, notify, push, callback, event = webhooks',
  'version, versioning, breaking, deprecated, deprecation, sunset, stable = compatibility',
  'test data, test account, test token, try, demo, sample data, playground, mock, fixture = sandbox',
  'unit test, unit tests, integration test = sandbox',
  'chatgpt, claude, gemini, copilot, llm, agent = assistants',
  'ticker, symbol, wkn, cusip, sedol = names isins',
  'spin off = spinoff',
  'invalid date, wrong date = invalid_format',
  'generator, generate, codegen, orval = generated clients',
  'gzip, compress, compression, brotli, zstd, speed, fast, load, throughput, response time = performance',
  'endpoint, route, resource, method, call = operations',
  'post, put, patch, write, create = method_not_allowed',
  'realised, realized, capital, profit, fifo, tax report = gains',
  'depot, custody, moved, move = transfer orders',
  'security, stock, fund, etf, bond = investment',
  'trade, purchase, sale, movement = transactions',
  'january, february, april, june, july, august, september, october, november, december = dates',
  'month, year, week, today, yesterday = dates',
  'after, before, period, range, last days, date range = from dates',
  'fees, fee, charge, cost, broker fee = commission',
  'withholding, retention, withheld = retention',
  'shares, quantity, units, number of shares = titles',
  'trade date, execution date = operation date',
  'settlement date, settlement = value date',
  'sort, sorting, order by, ordering = order',
  'filter, search, query, where = dates order filters',
  'position, positions, holdings, balance = positions',
  'stock split, split, merger, corporate action = split',
]

/** Removes the endings by which the forms of an English word differ. */
export const stem = (word) => word.toLowerCase().replace(/(?<=\w{3})(?:ies|es|s|ing|ed|e|y)$/, '')

/** Words of readers as they write them. */
export const READER_WORDS = GROUPS.flatMap((group) => group.split(' = ')[0].split(/, | /))

/** Words of the page by a word of readers, which is without its ending. Phrases keep their words. */
export const SYNONYMS = new Map(
  GROUPS.flatMap((group) => {
    const [readers, page] = group.split(' = ')
    return readers.split(', ').map((word) => [word.includes(' ') ? word : stem(word), [page]])
  }),
)

/** Number of typing errors between two words: a letter that is missing, added or another one, or two exchanged letters. */
function typingErrors(word, other) {
  let before = []
  let last = [...Array(other.length + 1).keys()]
  for (let i = 1; i <= word.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const changed = last[j - 1] + (word[i - 1] === other[j - 1] ? 0 : 1)
      row[j] = Math.min(row[j - 1] + 1, last[j] + 1, changed)
      if (word[i - 1] === other[j - 2] && word[i - 2] === other[j - 1])
        row[j] = Math.min(row[j], before[j - 2] + 1)
    }
    before = last
    last = row
  }
  return last.at(-1)
}

/** The known word that a misspelt one means. Numbers have no typing errors, and short words would become other words. */
export function corrected(word, known) {
  if (word.length <= 4 || /\d/.test(word)) return word
  let best = word
  let fewest = word.length > 7 ? 3 : 2
  for (const other of known) {
    // It is right, or the reader still types it.
    if (other.startsWith(stem(word))) return word
    if (Math.abs(other.length - word.length) >= fewest) continue
    const errors = typingErrors(word, other)
    if (errors >= fewest) continue
    best = other
    fewest = errors
  }
  return best
}
