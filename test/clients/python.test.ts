import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import t, { type Test } from 'tap'
import { PortfolioTransactionTypes } from '../../src/schemas/portfolio-transaction.ts'
import { startFaultProxy } from '../support/clients/fault-proxy.ts'
import { PYTHON, pythonEnvironment } from '../support/clients/python.ts'
import { needsProgram, run } from '../support/programs.ts'
import { addCaller, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

/** What only the Python clients have: threads, processes, proxies of the environment, asyncio. */
await needsProgram(t, PYTHON, 'python3')

const service = await startService(t)
const caller = await addCaller(service.db)
await lists.account.add(service.db, caller.connection, ...Array.from({ length: 6 }, () => ({})))

/** Runs a program that has `URL`, `TOKEN` and `CONNECTION`. A warning of Python is an error. */
function python(url: string, program: string, env: Record<string, string> = {}) {
  const values = { URL: url, TOKEN: caller.token, CONNECTION: caller.connection.token }
  const lines = Object.entries(values).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
  const source = `from investment_data import *\n${lines.join('\n')}\n${program}`
  const args = ['-X', 'dev', '-W', 'error', '-c', source]
  return run(PYTHON, args, { env: { ...pythonEnvironment, ...env } })
}

t.test('the compiler of Python has no warning', async (t) => {
  // Compiled files that are kept would hide them.
  const env = { PYTHONPYCACHEPREFIX: t.testdir() }
  const args = ['-W', 'error', '-m', 'compileall', '-f', '-q', pythonEnvironment.PYTHONPATH]
  t.equal(await run(PYTHON, args, { env }), '')
})

const forward = (t: Test) => startFaultProxy(t, { target: service.url, fault: () => 'none' })

t.test('threads: each has its own connection, and every row', async (t) => {
  const proxy = await forward(t)
  const printed = await python(
    proxy.url,
    `
from concurrent.futures import ThreadPoolExecutor
with InvestmentData(URL, TOKEN, page_size=2) as api, ThreadPoolExecutor(4) as threads:
    read = lambda _: len(list(api.connection(CONNECTION).account_transactions()))
    print(list(threads.map(read, range(12))))
`,
  )
  t.equal(printed, `${JSON.stringify(Array(12).fill(6)).replaceAll(',', ', ')}\n`)
  t.ok(proxy.connections <= 4, `${proxy.connections} connections`)
})

t.test('a synchronization without changes: at most 6 statements of SQLite', async (t) => {
  const program = `
import sqlite3
db = sqlite3.connect(":memory:")
store = SqliteStore(db, "mine", history=True)
connection = InvestmentData(URL, TOKEN).connection(CONNECTION)
connection.sync_transactions(store)
statements = []
db.set_trace_callback(statements.append)
connection.sync_transactions(store)
print(1 < len(statements) <= 6 or statements)
`
  t.equal(await python(service.url, program), 'True\n')
})

t.test('a forked process does not share a connection', async (t) => {
  const proxy = await forward(t)
  const printed = await python(
    proxy.url,
    `
import os, sys
with InvestmentData(URL, TOKEN) as api:
    read = lambda: len(list(api.connection(CONNECTION).account_transactions()))
    read()
    child = os.fork()
    if child == 0:
        os._exit(read())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), read())
`,
  )
  t.equal(printed, '6 6\n')
  t.equal(proxy.connections, 2)
})

/** Starts a proxy that forwards HTTP, and opens tunnels to `target`. */
async function startForwardProxy(t: Test, target: string) {
  const requests: string[] = []
  const { port } = new URL(target)
  const server: Server = createServer(async ({ url = '', headers }, response) => {
    requests.push(`GET ${new URL(url).host} ${headers['proxy-authorization']}`)
    const { authorization = '', accept = '' } = headers
    const { pathname, search } = new URL(url)
    const result = await fetch(`${target}${pathname}${search}`, {
      headers: { authorization, accept },
    })
    const type = { 'content-type': String(result.headers.get('content-type')) }
    response.writeHead(result.status, type).end(await result.text())
  })
  server.on('connect', ({ url, headers }, socket) => {
    requests.push(`CONNECT ${url} ${headers['proxy-authorization']}`)
    const upstream = connect(Number(port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      upstream.pipe(socket).pipe(upstream)
    })
    for (const each of [upstream, socket]) each.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address() as AddressInfo
  return { url: `http://user:p%40ss@127.0.0.1:${address.port}`, requests }
}

const READ_ORDERS = `
with InvestmentData(URL, TOKEN, retry=Retry(attempts=1)) as api:
    try:
        print(api.connection(CONNECTION).transfer_orders())
    except TransportError as error:
        print(error.code)
`
const BASIC = `Basic ${Buffer.from('user:p@ss').toString('base64')}`

t.test('HTTP_PROXY: requests go to the proxy, with its credentials', async (t) => {
  const proxy = await startForwardProxy(t, service.url)
  const url = 'http://service.invalid:8080'
  t.equal(await python(url, READ_ORDERS, { http_proxy: proxy.url }), '[]\n')
  t.strictSame(proxy.requests, [`GET service.invalid:8080 ${BASIC}`])
  const exempt = { http_proxy: proxy.url, no_proxy: '127.0.0.1' }
  t.equal(await python(service.url, READ_ORDERS, exempt), '[]\n')
  t.equal(proxy.requests.length, 1)
})

t.test('HTTPS_PROXY: TLS in a tunnel', async (t) => {
  const proxy = await startForwardProxy(t, service.url)
  // The service has no TLS, so the handshake in the tunnel fails.
  const printed = await python('https://service.invalid', READ_ORDERS, { https_proxy: proxy.url })
  t.equal(printed, 'no_tls\n')
  t.strictSame(proxy.requests, [`CONNECT service.invalid:443 ${BASIC}`])
})

t.test('asyncio: calls at the same time, and a responsive event loop', async (t) => {
  const proxy = await forward(t)
  const printed = await python(
    proxy.url,
    `
import asyncio
async def main():
    async with AsyncInvestmentData(URL, TOKEN, page_size=2, max_connections=3) as api:
        connection = api.connection(CONNECTION)
        async def read():
            return len([row async for row in connection.account_transactions()])
        print(*await asyncio.gather(*(read() for _ in range(9))))
asyncio.run(main())
`,
  )
  t.equal(printed, '6 6 6 6 6 6 6 6 6\n')
  t.ok(proxy.connections <= 3, `${proxy.connections} connections`)
})

t.test('asyncio: a cancelled task ends its request', async (t) => {
  const silent = await startFaultProxy(t, { target: service.url, fault: () => 'silent' })
  // Without the end of the request, the program would wait for its time limit of an hour.
  const printed = await python(
    silent.url,
    `
import asyncio
async def main():
    async with AsyncInvestmentData(URL, TOKEN, timeout=3600) as api:
        task = asyncio.create_task(api.connection(CONNECTION).transfer_orders())
        await asyncio.sleep(0.5)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            print("cancelled")
asyncio.run(main())
`,
  )
  t.equal(printed, 'cancelled\n')
})

t.test('asyncio: a store of your own may be asynchronous; not in the other client', async (t) => {
  const program = `
import asyncio
class Store:
    def __init__(self):
        self.copies = {}
    async def cursor(self, list_, copy):
        await asyncio.sleep(0)
        return self.copies.get((list_, copy), (None,))[0]
    async def apply(self, changes):
        rows = self.copies.get((changes.list, changes.copy), (None, {}))[1]
        rows.update(changes.upserts)
        self.copies[changes.list, changes.copy] = (changes.cursor, rows)
    async def count(self, list_, copy):
        return len(self.copies[list_, copy][1])
    async def swap(self, list_, cursor):
        self.copies[list_, "current"] = self.copies.pop((list_, "next"))
    async def discard(self, list_):
        self.copies.pop((list_, "next"), None)

async def main():
    async with AsyncInvestmentData(URL, TOKEN, page_size=4) as api:
        store = Store()
        print(await api.connection(CONNECTION).sync_transactions(store), len(store.copies))
asyncio.run(main())
with InvestmentData(URL, TOKEN) as api:
    try:
        api.connection(CONNECTION).sync_transactions(Store())
    except TypeError as error:
        print(error)
`
  // It counts no changes.
  const result = (count: number) =>
    `CopyResult(total_items=${count}, rebuilt=True, inserted=0, updated=0, removed=0, refreshed_at=None)`
  t.equal(
    await python(service.url, program),
    `SyncedCopies(portfolio=${result(0)}, account=${result(6)}, orders=${result(0)}) 3\n` +
      'a function for the synchronous client must not be asynchronous\n',
  )
})

t.test(
  'an iteration that is left early, and an error of the app, close their connection',
  async (t) => {
    const proxy = await forward(t)
    const printed = await python(
      proxy.url,
      `
import asyncio
with InvestmentData(URL, TOKEN) as api:
    for row in api.connection(CONNECTION).export_account_transactions():
        break
    print(len(list(api.connection(CONNECTION).export_account_transactions())))
async def main():
    async with AsyncInvestmentData(URL, TOKEN) as api:
        async for row in api.connection(CONNECTION).export_account_transactions():
            break
        print(len([row async for row in api.connection(CONNECTION).export_account_transactions()]))
asyncio.run(main())
`,
    )
    t.equal(printed, '6\n6\n')
  },
)

t.test('errors have public names, and a process of a pool can return them', async (t) => {
  const printed = await python(
    service.url,
    `
import pickle
def errors():
    for call in (
        lambda: InvestmentData(URL, "unknown").connection(CONNECTION).transfer_orders(),
        lambda: InvestmentData("http://127.0.0.1:1", TOKEN, retry=Retry(1)).connection("a").transfer_orders(),
    ):
        try:
            call()
        except InvestmentDataError as error:
            yield error
    yield CopyError("conflict", "Another process has changed the copy")
for error in errors():
    copy = pickle.loads(pickle.dumps(error))
    print(f"{type(copy).__module__}.{type(copy).__name__}", str(copy) == str(error), vars(copy) == vars(error))
`,
  )
  const names = ['AuthenticationError', 'TransportError', 'CopyError']
  t.equal(printed, names.map((name) => `investment_data.${name} True True\n`).join(''))
})

t.test('a client that is not closed: no ResourceWarning', async (t) => {
  const printed = await python(
    service.url,
    `
import gc, sys
sys.unraisablehook = lambda warning: print(warning.exc_value)
print(InvestmentData(URL, TOKEN).connection(CONNECTION).transfer_orders())
gc.collect()
`,
  )
  t.equal(printed, '[]\n')
})

t.test('SqliteStore: each kind of transactions and rows of the app', async (t) => {
  const folder = t.testdir({})
  const printed = await python(
    service.url,
    `
import sqlite3
with InvestmentData(URL, TOKEN, page_size=4) as api:
    for level in ("", "EXCLUSIVE", None):
        for factory in (None, sqlite3.Row, lambda cursor, row: {}):
            file = f"${folder}/{level}{id(factory)}.db"
            db = sqlite3.connect(file, isolation_level=level)
            db.row_factory = factory
            api.connection(CONNECTION).sync_transactions(SqliteStore(db, "mine"))
            db.close()
            db = sqlite3.connect(file)
            print(*db.execute("select count(*) from account_transactions").fetchone(), end=" ")
            db.close()
`,
  )
  t.equal(printed, '6 '.repeat(9))
})

t.test('an export waits for an app that takes longer than the time limit', async (t) => {
  const printed = await python(
    service.url,
    `
import time
with InvestmentData(URL, TOKEN, timeout=2) as api:
    rows = api.connection(CONNECTION).export_account_transactions()
    next(rows)
    time.sleep(2.5)
    print(1 + len(list(rows)))
`,
  )
  t.equal(printed, '6\n')
})

t.test(
  'the types of portfolio transactions and their effects are those of the document',
  async (t) => {
    const types = Object.entries(PortfolioTransactionTypes)
    const program = `
import json
from typing import get_args
types = [*get_args(PortfolioTransactionType), "A_LATER_TYPE", ""]
print(json.dumps({name: position_effect(name) for name in types}))
`
    const effects = types.map(([type, [effect]]) => [type, effect ?? null])
    t.strictSame(JSON.parse(await python(service.url, program)), {
      ...Object.fromEntries(effects),
      A_LATER_TYPE: null,
      '': null,
    })
  },
)

t.test('values of the client do not change: each dataclass is frozen', async (t) => {
  const program = `
import dataclasses, sys
modules = [module for name, module in sys.modules.items() if name.startswith("investment_data.")]
for module in modules:
    for name, each in vars(module).items():
        if dataclasses.is_dataclass(each) and each.__module__ == module.__name__:
            print(name, each.__dataclass_params__.frozen)
`
  const lines = (await python(service.url, program)).trim().split('\n')
  t.ok(lines.length >= 14, `${lines.length} classes`)
  t.same(
    lines.filter((line) => !line.endsWith(' True')),
    [],
  )
})

t.test('addresses of a name: the last one has all the time that is left', async (t) => {
  const printed = await python(
    service.url,
    `
import socket, time
# The system accepts no connection to a full queue.
full = socket.create_server(("127.0.0.1", 0), backlog=0)
waiting = [socket.socket() for _ in range(4)]
for each in waiting:
    each.setblocking(False)
    each.connect_ex(full.getsockname())
address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname())
socket.getaddrinfo = lambda *_, **__: [address, address]
start = time.monotonic()
try:
    with InvestmentData(URL, TOKEN, timeout=2, retry=Retry(attempts=1)) as api:
        list(api.connection(CONNECTION).account_transactions())
except TransportError as error:
    print(error.code, time.monotonic() - start >= 1.9)
for each in [full, *waiting]:
    each.close()
`,
  )
  t.equal(printed, 'timeout True\n')
})

t.test('an error that the system does not name: network_error', async (t) => {
  const printed = await python(
    service.url,
    `
import socket
def fail(*_, **__):
    raise OSError(100_000, "unknown")
socket.getaddrinfo = fail
try:
    with InvestmentData(URL, TOKEN, retry=Retry(attempts=1)) as api:
        list(api.connection(CONNECTION).account_transactions())
except TransportError as error:
    print(error.code)
`,
  )
  t.equal(printed, 'network_error\n')
})

const OWN_OBJECTS = [
  "create view portfolio_transactions as select 'mine' as text",
  'create table account_transactions (id integer primary key, text)',
  'create temporary table transfer_orders (text)',
  'create table Investment_Copy (id integer primary key, text)',
  "create view investment_changes as select 'mine' as text",
]

t.test('SqliteStore: an own table or view of the app is refused, and left as it is', async (t) => {
  const printed = await python(
    service.url,
    `
import sqlite3
with InvestmentData(URL, TOKEN, page_size=4) as api:
    for statement in ${JSON.stringify(OWN_OBJECTS)}:
        db = sqlite3.connect(":memory:")
        db.execute(statement)
        db.commit()
        objects = lambda: list(db.execute("select * from sqlite_master union all select * from sqlite_temp_master"))
        before = objects()
        try:
            SqliteStore(db, "mine")
        except CopyError as error:
            print(error.code, 'prefix="copy_")' in str(error), objects() == before, end=" ")
        store = SqliteStore(db, "mine", prefix="bank_", history=True)
        api.connection(CONNECTION).sync_transactions(store)
        print(*db.execute("select count(*) from bank_account_transactions").fetchone())
        db.close()
for prefix in ("1", "A", "a;", "a\\n"):
    try:
        SqliteStore(sqlite3.connect(":memory:"), "mine", prefix=prefix)
    except ValueError as error:
        print(error)
`,
  )
  const refused = 'prefix must be 1 to 30 of a-z, 0-9 and _, and begin with a letter\n'
  t.equal(printed, 'name_taken True True 6\n'.repeat(OWN_OBJECTS.length) + refused.repeat(4))
})

t.test('SqliteStore: text factories, converters and numbered parameters of the app', async (t) => {
  const printed = await python(
    service.url,
    `
import sqlite3
class Strict(sqlite3.Connection):
    """Refuses numbered parameters with a sequence, as later versions of Python do."""
    def execute(self, sql, *values):
        assert "?1" not in sql
        return super().execute(sql, *values)
    def cursor(self, *factory):
        return super().cursor(StrictCursor)
class StrictCursor(sqlite3.Cursor):
    def execute(self, sql, *values):
        assert "?1" not in sql
        return super().execute(sql, *values)
for name in ("text", "integer", "blob"):
    sqlite3.register_converter(name, lambda value: ("converted", value))
both = sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES
with InvestmentData(URL, TOKEN, page_size=4) as api:
    for factory in (str, bytes, bytearray, lambda value: 5):
        db = sqlite3.connect(":memory:", detect_types=both, factory=Strict)
        db.text_factory = factory
        store = SqliteStore(db, "mine", history=True)
        for _ in range(2):
            synced = api.connection(CONNECTION).sync_transactions(store)
            print(synced.account.total_items, synced.account.inserted, synced.account.rebuilt, end=" ")
        rows = list(store.account_transactions(from_="2025-01-01"))
        print(len(rows), type(rows[0]["amount"]).__name__, len(positions(store)))
        store.delete()
        db.close()
`,
  )
  t.equal(printed, '6 6 True 6 0 False 6 Decimal 0\n'.repeat(4))
})

t.test('SqliteStore: an open transaction of the app: one sentence, and it stays', async (t) => {
  const printed = await python(
    service.url,
    `
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("create table own (text)")
store = SqliteStore(db, "mine")
db.execute("insert into own values ('mine')")
with InvestmentData(URL, TOKEN) as api:
    try:
        api.connection(CONNECTION).sync_transactions(store)
    except CopyError as error:
        print(error.code, error)
    db.commit()
    print(*db.execute("select * from own").fetchone())
    print(api.connection(CONNECTION).sync_transactions(store).account.total_items)
`,
  )
  const sentence = 'The database has an open transaction: end it before the store writes'
  t.equal(printed, `transaction_open ${sentence}\nmine\n6\n`)
})

t.test('tokens: white space and a whole header are refused with a sentence', async (t) => {
  const printed = await python(
    service.url,
    `
for token in ("Xq4t\\n", " Xq4t", "Xq4t\\r\\n", "a\\tb", "a\\u2028b", "\\u00a0a", "\\ufeffa"):
    try:
        InvestmentData(URL, TOKEN).connection(token)
    except ValueError as error:
        print(error)
for token in ("Bearer idq_a", "bearer idq_a"):
    try:
        InvestmentData(URL, token)
    except ValueError as error:
        print(error)
`,
  )
  const space = 'the token of a connection begins or ends with white space, or has a line break\n'
  const header = 'token must be the token alone: the client adds "Bearer"\n'
  t.equal(printed, space.repeat(7) + header.repeat(2))
})

t.test('calls at the same time for one copy: asyncio shares, threads wait', async (t) => {
  const proxy = await forward(t)
  const printed = await python(
    proxy.url,
    `
import asyncio, sqlite3
from concurrent.futures import ThreadPoolExecutor
async def main():
    db = sqlite3.connect(":memory:")
    async with AsyncInvestmentData(URL, TOKEN) as api:
        connection, other = api.connection(CONNECTION), api.connection(CONNECTION)
        stores = SqliteStore(db, "mine"), SqliteStore(db, "mine")
        results = await asyncio.gather(*(connection.sync_transactions(each) for each in stores * 2))
        print(len({id(each) for each in results}), results[0].account.inserted)
        told = []
        results = await asyncio.gather(
            other.sync_transactions(stores[0], on_changes=told.append),
            connection.sync_transactions(stores[0]),
        )
        print([each.account.inserted for each in results], told)
        # A cancelled caller ends its own wait alone.
        fresh = SqliteStore(db, "fresh")
        first = asyncio.create_task(connection.sync_transactions(fresh))
        await asyncio.sleep(0)
        second = asyncio.create_task(connection.sync_transactions(fresh))
        await asyncio.sleep(0)
        first.cancel()
        print((await second).account.total_items, first.cancelled())
asyncio.run(main())
db = sqlite3.connect(":memory:", check_same_thread=False)
with InvestmentData(URL, TOKEN) as api, ThreadPoolExecutor(4) as threads:
    store = SqliteStore(db, "mine")
    sync = lambda _: api.connection(CONNECTION).sync_transactions(store).account.inserted
    print(sorted(threads.map(sync, range(4))))
`,
  )
  t.equal(printed, '1 6\n[0, 0] []\n6 True\n[0, 0, 0, 6]\n')
})
