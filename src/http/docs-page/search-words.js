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
  'rotate, rotation, renew, leak, leaked, compromised, stolen = credentials replace',
  'quick start, quickstart, getting started, hello world, tutorial, first call, example request = first request',
  'sdk, library, package, npm, pip, nodejs, node, java script = clients',
  'changelog, release notes, news, whats new, history of changes, last release, latest version, what changed = changelog',
  'timezone, time zone, utc, datetime, timestamp, local time = dates',
  'updated, update, often, poll, polling, interval, refresh, refreshed, stale, latest, fresh, delay, age = freshness',
  'all rows, all pages, all transactions = pagination exports',
  'paging, paginate, offset, next page, page size, infinite = pagination',
  'rate limit, throttle, throttling, quota, too many requests, 429 = rate limits',
  'duplicate, idempotent, idempotency, dedupe = keeping copy',
  'incremental, delta, sync, synchronize, only new, deleted, removal, changed rows = keeping copy',
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
  'version, versioning, breaking, deprecated, deprecation, stable = compatibility',
  'test data, test account, test token, try, demo, sample data, playground, mock, fixture = sandbox',
  'generator, generate, codegen, orval = generated clients',
  'gzip, compress, compression, brotli, zstd, speed, fast, load, throughput, response time = performance',
  'endpoint, route, resource, method, call = operations',
  'post, put, patch, write, create = method_not_allowed',
  'realised, realized, capital, profit, cost basis, fifo, tax report = gains',
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
  'stock split, split, merger, spin off, corporate action = split',
]

const stem = (word) => word.replace(/(?<=\w{3})(?:ies|es|s|ing|ed|e|y)$/, '')

/** Words of the page by a word of readers, which is without its ending. Phrases keep their words. */
export const SYNONYMS = new Map(
  GROUPS.flatMap((group) => {
    const [readers, page] = group.split(' = ')
    return readers.split(', ').map((word) => [word.includes(' ') ? word : stem(word), [page]])
  }),
)
