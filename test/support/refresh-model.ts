import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { verifyRowCounts } from '../../src/operator/verify.ts'
import { prepareImport, uuid } from './importing.ts'
import { startOperator } from './operator-process.ts'
import { type Random, randomOf } from './random.ts'
import { addApp, addConnection, addToken } from './rows.ts'
import { startService } from './service.ts'

const CONNECTIONS = 6
const ROWS = 12

export interface Model {
  processes: number
  lines: number
  /** Random events while the lines are refreshed. */
  faults: number
  /** URL of the refreshes, for example of PgBouncer, from that of the database. */
  through?: (url: string) => Promise<string>
  environment?: Record<string, string>
}

/** Rows of a connection after a line, by their ids: the version that the line wrote. */
type Rows = Map<string, string>

interface Line {
  text: string
  connection: string
  isValid: boolean
  apply(rows: Rows): void
}

interface Result {
  line: number
  connection?: string
  dataVersion?: string
  errors?: object[]
  portfolioTransactions?: Record<string, number>
}

/**
 * Refreshes connections by several processes, each with its own connections and random lines, which faults interrupt.
 * A process that ends continues at its first line without a result. Then each connection must have the rows of the
 * model, each result must be true, and the copies of readers must equal the lists.
 */
export async function checkRefreshes(t: Test, model: Model): Promise<void> {
  const { url, db, pool } = await prepareImport(t)
  const service = await startService(t, { databaseUrl: url })
  const appId = await addApp(db)
  const token = await addToken(db, appId)
  const target = (await model.through?.(url)) ?? url
  let isOver = false
  const children = new Set<ChildProcess>()

  const own = async (number: number) => {
    const random = randomOf(`lines ${number}`)
    const connections = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => addConnection(db, appId)),
    )
    const rowsOf = new Map(connections.map(({ id }): [string, Rows] => [id, new Map()]))
    const lines = Array.from({ length: model.lines }, () =>
      lineOf(
        random,
        connections.map(({ id }) => id),
      ),
    )
    // Some lines come twice.
    for (let index = 0; index < lines.length; index += 10)
      lines.splice(index, 0, lines[index] as Line)
    const copy = follow(connections[0]?.portfolio ?? '')
    let done = 0
    let restarts = -1
    while (done < lines.length) {
      restarts += 1
      const first = done
      const env = { ...model.environment, DATABASE_URL: target }
      const { child, stderr, closed } = startOperator(['refresh', '--jobs', '3'], { env })
      children.add(child)
      const results = new Map<number, Result>()
      createInterface(child.stdout).on('line', (text) => {
        const result: Result = JSON.parse(text)
        results.set(first + result.line - 1, result)
      })
      for (const { text } of lines.slice(first)) child.stdin.write(`${text}\n`)
      child.stdin.end()
      const { code, signal } = await closed
      children.delete(child)
      if (signal !== 'SIGKILL' && code !== 0 && code !== 1) t.fail(`exit code ${code}: ${stderr()}`)
      // Lines after the first one without a result may be written, too: they are sent again.
      while (results.has(done)) done += 1
      for (const [index, result] of results) {
        const { isValid, connection } = lines[index] as Line
        if (isValid !== (result.errors === undefined)) t.same(result, lines[index])
        if (isValid && result.connection !== connection) t.same(result, lines[index])
      }
    }
    for (const line of lines) if (line.isValid) line.apply(rowsOf.get(line.connection) as Rows)
    return { connections, rowsOf, copy, restarts }
  }

  const disturb = async () => {
    const { below } = randomOf('faults')
    for (let fault = 0; fault < model.faults && !isOver; fault += 1) {
      await sleep(below(1_500))
      if (below(3) === 0) [...children][below(children.size)]?.kill('SIGKILL')
      else
        await pool.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and application_name = 'investment-data-operator'
             and random() < 0.5`,
        )
    }
  }

  /** Reads the changes, as a client with a copy, until all is over. */
  const follow = async (path: string) => {
    const copy = new Map<string, string>()
    let cursor = 'start'
    for (let isLast = isOver; ; ) {
      const response = await service.get(`${path}?since=${cursor}&limit=7`, { token })
      const { items, removed, nextCursor, hasMore } = response.json()
      for (const id of removed) copy.delete(id)
      for (const { transactionId, description } of items) copy.set(transactionId, description)
      cursor = nextCursor
      if (hasMore) continue
      if (isLast) return copy
      isLast = isOver
      await sleep(20)
    }
  }

  const working = Promise.all(Array.from({ length: model.processes }, (_, number) => own(number)))
  const disturbing = disturb()
  const finished = await working
  isOver = true
  await disturbing
  let restarts = 0
  for (const { connections, rowsOf, copy: followed, restarts: own } of finished) {
    restarts += own
    for (const [index, connection] of connections.entries()) {
      const listed = await service.get(`${connection.portfolio}?limit=1000`, { token })
      const found = listed
        .json()
        .items.map((item: Record<string, string>) => [item.transactionId, item.description])
      const expected = [...(rowsOf.get(connection.id) as Rows)].sort()
      t.same(found.sort(), expected, 'the connection has the rows of its lines')
      const copy = index === 0 ? await followed : await follow(connection.portfolio)
      t.same([...copy].sort(), expected, 'the copy equals the list')
    }
  }
  t.same(await verifyRowCounts(db).then(({ differences, numbers }) => [differences, numbers]), [
    [],
    [],
  ])
  t.comment(`${restarts} processes were killed`)
}

let written = 0

function lineOf({ below, oneOf }: Random, ids: string[]): Line {
  const connection = oneOf(ids)
  const isValid = below(8) > 0
  const replaces = below(4) === 0
  written += 1
  const version = String(written)
  const numbers = new Set(Array.from({ length: 1 + below(ROWS) }, () => below(ROWS)))
  const row = (number: number) =>
    `{"transactionId":"${uuid(number)}","portfolioId":"${uuid(0)}","type":"BUY",` +
    `"operationDateDay":"2024-02-29","description":"${version}"}`
  const rows = [...numbers].map(row)
  if (!isValid) rows.push('{"type":5}')
  const replace = replaces ? ',"replace":{"yes":true}' : ''
  return {
    text: `{"connection":"${connection}","portfolioTransactions":[${rows}]${replace}}`,
    connection,
    isValid,
    apply: (found) => {
      if (replaces) found.clear()
      for (const number of numbers) found.set(uuid(number), version)
    },
  }
}
