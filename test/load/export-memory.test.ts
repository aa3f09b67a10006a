import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { openTestDatabase } from '../support/new-database.ts'
import { peakMemory, startServiceProcess } from '../support/processes/service-process.ts'
import { addCaller } from '../support/rows.ts'

/** 6 KB each, in 13 blocks: together 2.5 times the allowed memory in each media type. */
const ROWS = 25_000
/** Rows of the newest days: two blocks. */
const SMALL = { rows: 4_000, query: '?from=2020-07-29' }
const ALLOWED_MB = 60
/** A slow client pauses this often, after equal parts of the body. The service could read all rows meanwhile. */
const PAUSES = 20
const PAUSE_MS = 100

const { db, login } = await openTestDatabase(t)
const { token, connection } = await addCaller(db)
await sql`insert into account_transaction
    (connection_id, movement_id, account_id, type, amount, operation_date_day, description)
  select ${connection.id}, gen_random_uuid(), gen_random_uuid(), 'DEPOSIT', n,
    date '2020-01-01' + n / 100, repeat(md5(n::text), 188)
  from generate_series(0, ${ROWS - 1}::integer) as n`.execute(db)

for (const accept of ['application/x-ndjson', 'text/csv']) {
  t.test(`200: the memory of an export does not grow with its rows, ${accept}`, async (t) => {
    const service = await startServiceProcess(t, { DATABASE_URL: login })

    /** Returns the peak memory of the process after an export, in MB. */
    async function peakAfter(query: string, rows: number, pauseEach = Number.POSITIVE_INFINITY) {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const headers = { authorization: `Bearer ${token}`, accept }
        const path = connection.account + query
        get({ host: '127.0.0.1', port: service.port, path, headers }, resolve).on('error', reject)
      })
      let bytes = 0
      let pauses = 0
      for await (const chunk of response) {
        bytes += chunk.length
        if (bytes < (pauses + 1) * pauseEach) continue
        pauses += 1
        await sleep(PAUSE_MS)
      }
      t.equal(response.headers['x-total-count'], String(rows))
      t.ok(bytes > rows * 6_000, `${bytes} bytes`)
      return await peakMemory(service)
    }

    const small = await peakAfter(SMALL.query, SMALL.rows)
    // Behind a slow client, the service holds the most. A fast one adds nothing.
    const slow = await peakAfter('', ROWS, (ROWS * 6_000) / PAUSES)
    const found = `${small} MB, slow ${slow} MB`
    t.comment(found)
    t.ok(slow - small < ALLOWED_MB, found)
  })
}
