import { randomBytes } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { failureOf, startStoreDrivers } from '../support/clients/drivers.ts'
import { PYTHON } from '../support/clients/python.ts'
import { accessOf, readList } from '../support/clients/service.ts'
import { needsProgram } from '../support/programs.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startEmbeddedServer } from '../support/servers/embedded-postgres.ts'
import { startService } from '../support/service.ts'

/** A store of the clients on a PostgreSQL whose disk is full. */
await needsProgram(t, PYTHON, 'python3-psycopg-pool', ['-c', 'import psycopg_pool'])

const service = await startService(t)
const { db } = service
const disk = t.testdir({})
const { server } = await startEmbeddedServer(t, { folder: disk, megabytes: 12 })
const client = new pg.Client({ connectionString: server })
await client.connect()
t.teardown(() => client.end())
await client.query(`create tablespace small location '${disk}'`)

/** Fills the disk to its last page. */
async function fill(): Promise<void> {
  await client.query('create table filler (text text) tablespace small')
  await client.query('alter table filler alter column text set storage plain')
  for (const count of [1000, 100, 10, 1])
    for (let isFull = false; !isFull; ) {
      const sql = `insert into filler select repeat('x', 7000) from generate_series(1, ${count})`
      isFull = await client.query(sql).then(
        () => false,
        ({ code }) => code === '53100',
      )
    }
}

for (const [language, { here }] of Object.entries(startStoreDrivers(t, 'PostgreSQL')))
  t.test(`${language}: a full disk: the copy as before, and then the rest`, async (t) => {
    const caller = await addCaller(db)
    await addPortfolioTransactions(db, caller.connection, {}, {}, {})
    const schema = `copy_${randomBytes(6).toString('hex')}`
    await client.query(`create schema ${schema}`)
    t.teardown(() => client.query(`drop schema ${schema} cascade`))
    // Not URLSearchParams, because libpq does not read its "+" as a blank.
    const options = encodeURIComponent(`-csearch_path=${schema} -cdefault_tablespace=small`)
    const url = `${server}?options=${options}`
    const access = { ...accessOf(service, caller), pageSize: 20 }
    const copy = () => here.copy(access, url, 'mine', { history: true })
    const idsOfCopy = async () =>
      (await here.read(url, 'mine', 'portfolio')).map((row) => row.transactionId)
    await copy()
    const before = await idsOfCopy()
    t.equal(before.length, 3)
    await fill()
    // Random digits, because PostgreSQL compresses others.
    const rows = Array.from({ length: 100 }, () => ({
      description: randomBytes(1000).toString('hex'),
    }))
    await addPortfolioTransactions(db, caller.connection, ...rows)
    t.match((await failureOf(copy())).message, /No space left on device/)
    t.strictSame(await idsOfCopy(), before)
    await client.query('drop table filler')
    const { result, told } = await copy()
    t.match(result.portfolio, { totalItems: 103, inserted: 100, rebuilt: false })
    t.equal(told.flatMap(({ upserts }) => upserts).length, 100, 'each row once')
    const ids = (await readList(service, caller, 'portfolio')).map((row) => row.transactionId)
    t.strictSame(await idsOfCopy(), ids)
  })
