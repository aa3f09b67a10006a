import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type {
  AccountTransaction,
  AssetsTransferOrder,
  Decimal,
  PortfolioTransaction,
  ProblemError,
} from '../../clients/typescript/src/index.ts'
import type { components } from '../../docs/reference/openapi.ts'
import { PYTHON, pythonEnvironment } from '../support/clients/python.ts'
import {
  addBetterSqlite,
  addNodeTypes,
  installTypescriptClient,
} from '../support/clients/typescript-package.ts'
import { needsProgram, run } from '../support/programs.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { expireCursors } from '../support/state.ts'
import { readmeExamples } from './readme-examples.ts'

await needsProgram(t, PYTHON, 'python3')
await needsProgram(t, 'mypy', 'mypy')

const ROOT = join(import.meta.dirname, '../..')
const TSC = join(ROOT, 'node_modules/.bin/tsc')
const typescript = join(ROOT, 'clients/typescript')
const python = join(ROOT, 'clients/python')

const service = await startSeededService(t)
const examples = {
  typescript: await readmeExamples('typescript', service.url),
  python: await readmeExamples('python', service.url),
}

/** Examples of README.md and docs/clients.md in both languages, in their order. */
const PROGRAMS = [
  'list-rows',
  'daily-copy',
  'read-copy',
  'what-changed',
  'check-history',
  'own-tables',
  'export-rows',
]

/** What the examples do not use, for the types. */
const EVERYTHING_TS = `
import { DatabaseSync } from 'node:sqlite'
import Database from 'better-sqlite3'
import {
  type CopyResult, type CopyStore, type Decimal, type Gap, InvestmentData, type OnChanges, type PositionCheck,
  type PositionEffect, type PositionsOfDay, positionEffect, checkPositions, chronological, positions, positionsByDay, ProblemError,
  type RowChanges, SqliteStore,
} from '@investment-data/client'

const api = new InvestmentData({ baseUrl: 'https://data.example.com', token: 'a' }).connection('b')
const store: CopyStore & SqliteStore = new SqliteStore(new DatabaseSync(':memory:'), 'c', { history: true })
const other: CopyStore = new SqliteStore(new Database(':memory:'), 'c')
const rows = api.portfolioTransactions({ limit: 20, from: '2025-01-01' })
for await (const { type, titles } of rows) {
  switch (type) {
    case 'BUY':
    case 'A_LATER_TYPE':
      break
  }
  const shares: Decimal | null = titles
  const effect: PositionEffect | undefined = positionEffect(type)
  console.log(shares, effect)
}
const times: (Date | null)[] = [rows.refreshedAt, store.refreshedAt(), (await api.transferOrders()).refreshedAt]
const total: number | null = rows.totalItems
const onChanges: OnChanges = (changes: RowChanges) => {
  if (changes.list === 'portfolio_transactions')
    for (const row of changes.upserts) console.log(changes.previous.get(row.transactionId)?.price)
  if (changes.list === 'transfer_orders') for (const row of changes.upserts) console.log(row.isin)
}
const { orders }: { orders: CopyResult } = await api.syncTransactions(store, { onChanges })
const bound = new SqliteStore(new DatabaseSync(':memory:'), 'd')
await api.syncTransactions(bound, {
  onChanges: (changes) => {
    if (changes.list === 'transfer_orders') for (const row of changes.upserts) console.log(row.isin)
    const shares: (Decimal | null)[] = positions(changes.store).map((position) => position.shares)
    const at: Date | null = changes.store.refreshedAt()
    console.log(shares, at)
  },
})
const counts: number = orders.inserted + orders.updated + orders.removed
for (const { isin } of store.transferOrders()) console.log(isin)
for (const { amount } of chronological(store.accountTransactions({ to: '2025-12-31' }))) console.log(amount)
const checks: PositionCheck[] = checkPositions(store)
const gap: Gap | undefined = checks[0]?.firstGap
const days: PositionsOfDay[] = positionsByDay(store, { from: '2025-01-01', to: '2025-12-31', names: { x: 'y' } })
const shares: (Decimal | null)[] | undefined = days[0]?.positions.map(({ shares }) => shares)
const own = await api.syncAccountTransactions({ apply: () => {} })
if (own.status === 'complete') times.push(own.refreshedAt)
const code = (error: unknown) => error instanceof ProblemError && error.code === 'a_later_code'
store.delete()
console.log(times, total, counts, gap, code, other, shares)
`
const EVERYTHING_PY = `
import sqlite3
from datetime import datetime
from decimal import Decimal
from typing import List, Optional

from investment_data import (
    AsyncInvestmentData, Complete, CopyResult, CopyStore, Gap, InvestmentData, OnChanges, PositionCheck,
    PositionEffect, PositionsOfDay, RowChanges, SqliteStore, check_positions, chronological, position_effect,
    positions, positions_by_day,
)

def on_changes(changes: RowChanges) -> None:
    if changes.list == "portfolio_transactions":
        for row in changes.upserts:
            before = changes.previous.get(row["transactionId"])
            price: Optional[Decimal] = before["price"] if before else None
            print(price)
    elif changes.list == "transfer_orders":
        print([row["isin"] for row in changes.upserts])
    print([position.shares for position in positions(changes.store)])

def synchronous() -> None:
    api = InvestmentData("https://data.example.com", "a").connection("b")
    store = SqliteStore(sqlite3.connect(":memory:"), "c", history=True)
    copies: CopyStore = store
    rows = api.portfolio_transactions(limit=20, from_="2025-01-01")
    for row in rows:
        if row["type"] == "A_LATER_TYPE":
            continue
        shares: Optional[Decimal] = row["titles"]
        effect: Optional[PositionEffect] = position_effect(row["type"])
        print(shares, effect)
    times: List[Optional[datetime]] = [rows.refreshed_at, store.refreshed_at(), api.transfer_orders().refreshed_at]
    total: Optional[int] = rows.total_items
    told: OnChanges = on_changes
    orders: CopyResult = api.sync_transactions(copies, on_changes=told).orders
    print(orders.inserted + orders.updated + orders.removed, total)
    print([order["isin"] for order in store.transfer_orders()])
    amounts: List[Decimal] = [each["amount"] for each in chronological(store.account_transactions(to="2025-12-31"))]
    checks: List[PositionCheck] = check_positions(store)
    gap: Optional[Gap] = checks[0].first_gap
    days: List[PositionsOfDay] = positions_by_day(store, from_="2025-01-01", to="2025-12-31", names={"x": "y"})
    held: List[Optional[Decimal]] = [each.shares for each in days[0].positions]
    own = api.sync_account_transactions(cursor=None, apply=print)
    if isinstance(own, Complete):
        times.append(own.refreshed_at)
    store.delete()
    print(times, amounts, gap, held)

async def asynchronous() -> None:
    async with AsyncInvestmentData("https://data.example.com", "a") as client:
        api = client.connection("b")
        rows = api.account_transactions(limit=5)
        amounts: List[Decimal] = [row["amount"] async for row in rows]
        await rows.aclose()
        refreshed: Optional[datetime] = rows.refreshed_at
        synced = await api.sync_transactions(SqliteStore(sqlite3.connect(":memory:"), "c"), on_changes=on_changes)
        print(amounts, refreshed, synced.orders.refreshed_at)
`

/** Is `string`, and not the `string & {}` of a value that a later version may add. */
type IsAnyText<T> =
  (<U>() => U extends T ? 1 : 2) extends <U>() => U extends string ? 1 : 2 ? true : false
/** Replaces decimals as text by numbers, as in the default media type of the document. Lists are closed. */
type AsNumbers<T> = T extends Decimal
  ? number
  : T extends string
    ? string extends T
      ? IsAnyText<T> extends true
        ? T
        : never
      : T
    : T extends object
      ? { [Name in keyof T]: AsNumbers<T[Name]> }
      : T
type IsSame<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
type Schemas = components['schemas']

t.test('TypeScript: the types are those of docs/reference/openapi.json', async (t) => {
  const portfolio: IsSame<AsNumbers<PortfolioTransaction>, Schemas['PortfolioTransaction']> = true
  const account: IsSame<AsNumbers<AccountTransaction>, Schemas['AccountTransaction']> = true
  const order: IsSame<AsNumbers<AssetsTransferOrder>, Schemas['AssetsTransferOrder']> = true
  const code: IsSame<AsNumbers<ProblemError['code']>, Schemas['Problem']['code']> = true
  t.ok(portfolio && account && order && code, 'checked by npm run check:types')
})

/** Prints the fields of each type: `decimal`, or the values of a closed list; `null` if optional. */
const PRINT_TYPES = `
import json, typing
from decimal import Decimal
import investment_data as module
def describe(hint):
    args = typing.get_args(hint)
    if type(None) in args:
        return [*describe(args[0]), "null"]
    if str in args:
        return describe(args[0])
    if typing.get_origin(hint) is typing.Literal:
        return sorted(args)
    return ["decimal"] if hint is Decimal else [] if hint in (str, bool) else [hint.__name__]
print(json.dumps({
    name: {field: describe(hint) for field, hint in typing.get_type_hints(getattr(module, name)).items()}
    for name in ("PortfolioTransaction", "AccountTransaction", "AssetsTransferOrder", "RetentionDetail", "Company")
}))
`

interface Schema {
  type?: string | string[]
  format?: string
  enum?: string[]
  $ref?: string
  anyOf?: Schema[]
  properties?: Record<string, Schema>
}

t.test('Python: the types are those of docs/reference/openapi.json', async (t) => {
  const printed = JSON.parse(await run(PYTHON, ['-c', PRINT_TYPES], { env: pythonEnvironment }))
  const document = JSON.parse(await readFile(join(ROOT, 'docs/reference/openapi.json'), 'utf8'))
  const schemas: Record<string, Schema> = document.components.schemas
  const describe = (schema: Schema): string[] => {
    const { $ref, anyOf, type = [], format } = schema
    if (anyOf) return anyOf.flatMap(describe)
    const name = String($ref).split('/').at(-1) ?? ''
    const target = schemas[name]
    if ($ref && target) return target.properties ? [name] : describe(target)
    const nullable = [type].flat().includes('null') ? ['null'] : []
    if (schema.enum) return [...schema.enum.toSorted(), ...nullable]
    return [...(format === 'decimal' ? ['decimal'] : []), ...nullable]
  }
  for (const [name, fields] of Object.entries(printed)) {
    const wanted = Object.entries(schemas[name]?.properties ?? {}).map(([field, schema]) => {
      return [field, describe(schema)]
    })
    t.strictSame(Object.entries(fields as object), wanted, name)
  }
})

t.test(
  'TypeScript: the package works after its build; the documents print what they say',
  async (t) => {
    const folder = t.testdir({})
    await installTypescriptClient(folder)
    await addNodeTypes(folder)
    await addBetterSqlite(folder)
    for (const { file, source } of examples.typescript) await writeFile(join(folder, file), source)
    await writeFile(join(folder, 'everything.mts'), EVERYTHING_TS)
    const strict = [
      '--ignoreConfig',
      '--strict',
      '--exactOptionalPropertyTypes',
      '--noUncheckedIndexedAccess',
      // Files of TypeScript, not of the package.
      '--skipDefaultLibCheck',
    ]
    const target = ['--noEmit', '--target', 'es2022', '--module', 'nodenext', '--types', 'node']
    const names = examples.typescript.map(({ file }) => file)
    await run(TSC, [...strict, ...target, ...names, 'everything.mts'], { cwd: folder })
    t.strictSame(
      names,
      [...PROGRAMS, 'show-errors'].map((name) => `${name}.mts`),
    )
    for (const { file, output } of examples.typescript) {
      const args = ['--disable-warning=ExperimentalWarning', file]
      t.equal(await run(process.execPath, args, { cwd: folder }), output, file)
    }
    const [, copy, , , , own] = examples.typescript
    const unchanged = copy?.output.replaceAll(/(\d+) \d+ 0 0$/gm, '$1 0 0 0')
    const print = (file: string) =>
      run(process.execPath, ['--disable-warning=ExperimentalWarning', file], { cwd: folder })
    t.equal(await print('daily-copy.mts'), unchanged, 'a refresh')
    t.equal(await print('own-tables.mts'), own?.output, 'a refresh')
    await expireCursors(service.db)
    t.equal(await print('daily-copy.mts'), unchanged, 'a 410')
    t.equal(await print('own-tables.mts'), 'cursor_expired 0\n', 'a 410')
    t.equal(await print('own-tables.mts'), own?.output, 'a new copy')
  },
)

t.test('Python: mypy --strict accepts it; the documents print what they say', async (t) => {
  const folder = t.testdir({})
  for (const { file, source } of examples.python) await writeFile(join(folder, file), source)
  const names = examples.python.map(({ file }) => file)
  const cache = [
    '--cache-dir',
    join(ROOT, 'node_modules/.cache/mypy'),
    '--config-file',
    join(python, 'pyproject.toml'),
  ]
  const sources = [
    'clients/python/src/investment_data',
    'clients/python/examples/beancount_file.py',
    'clients/examples/fifo.py',
    'clients/examples/rates.py',
    'clients/examples/tax_report.py',
    'test/support/clients/driver.py',
  ].map((path) => join(ROOT, path))
  await writeFile(join(folder, 'everything.py'), EVERYTHING_PY)
  names.push('everything.py')
  const env = { MYPYPATH: join(python, 'src') }
  await run('mypy', [...cache, '--strict', ...sources, ...names], { cwd: folder, env })

  const others = ['list_orders', 'show_errors', 'everything']
  t.strictSame(
    names,
    [...PROGRAMS, ...others].map((name) => `${name.replaceAll('-', '_')}.py`),
  )
  const options = { cwd: folder, env: pythonEnvironment }
  for (const { file, output } of examples.python) {
    // A warning of Python is an error.
    t.equal(await run(PYTHON, ['-W', 'error', file], options), output, file)
  }
  const [, copy, , , , own] = examples.python
  const unchanged = copy?.output.replaceAll(/(\d+) \d+ 0 0$/gm, '$1 0 0 0')
  const print = (file: string) => run(PYTHON, [file], options)
  t.equal(await print('daily_copy.py'), unchanged, 'a refresh')
  t.equal(await print('own_tables.py'), own?.output, 'a refresh')
  await expireCursors(service.db)
  t.equal(await print('daily_copy.py'), unchanged, 'a 410')
  t.equal(await print('own_tables.py'), 'CursorExpired 0\n', 'a 410')
  t.equal(await print('own_tables.py'), own?.output, 'a new copy')
})

t.test('both packages: one version, no dependencies, the license of the project', async (t) => {
  const project = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  const { name, version, dependencies, license } = JSON.parse(
    await readFile(join(typescript, 'package.json'), 'utf8'),
  )
  t.equal(name, '@investment-data/client')
  t.equal(dependencies, undefined)
  t.equal(license, project.license)
  const pyproject = await readFile(join(python, 'pyproject.toml'), 'utf8')
  t.match(pyproject, `version = "${version}"`)
  t.match(pyproject, 'dependencies = []')
  t.match(pyproject, `license = { text = "${license}" }`)
  for (const folder of [typescript, python]) {
    t.match(await readFile(join(folder, 'CHANGELOG.md'), 'utf8'), `## ${version}\n`)
  }
})
