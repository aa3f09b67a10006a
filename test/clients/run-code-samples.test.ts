import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { codeSamples, PLACEHOLDER } from '../../src/http/openapi/code-samples.js'
import { pythonEnvironment } from '../support/clients/python.ts'
import { installTypescriptClient } from '../support/clients/typescript-package.ts'
import { needsProgram, run } from '../support/programs.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

interface Document {
  paths: Record<string, { get: { operationId: string; 'x-codeSamples': Sample[] } }>
}
interface Sample {
  label: string
  source: string
}

await needsProgram(t, 'curl', 'curl')
await needsProgram(t, 'python3', 'python3')

const service = await startSeededService(t)
const { paths } = (await service.get('/openapi.json')).json() as Document

const { token: CONNECTION_TOKEN } = DEMO.wealth.connections.small
const TOKENS = { APP_TOKEN: DEMO_TOKEN, CONNECTION_TOKEN }

const folder = t.testdir({})
await installTypescriptClient(folder)

/** Commands of the samples. Those of a file are in its first line: file and command. */
const SAVED = /^(?:\/\/|#) Save as (\S+), and run: (.+)$/m

/** Saves and runs a sample as its text says. A command of the shell has no file. */
async function execute({ label, source }: Sample, env: Record<string, string> = TOKENS) {
  const text = source.replaceAll(PLACEHOLDER, service.url)
  const [, file, command] = SAVED.exec(text) ?? []
  if (label === 'curl') return run('bash', ['-c', text], { cwd: folder, env })
  if (file === undefined || command === undefined) throw new Error(`${label}: no name of a file`)
  await writeFile(join(folder, file), text)
  const [program = '', ...args] = command.split(' ')
  const path = program === 'node' ? process.execPath : program
  return run(path, args, { cwd: folder, env: { ...pythonEnvironment, ...env } })
}

/** Amounts of the sample data. A binary float loses trailing zeros. */
const AMOUNTS: Record<string, string[]> = {
  listPortfolioTransactions: ['406.20', '0.0000000000000000000000000612345'],
  listAccountTransactions: ['3500.00', '1.284617'],
  listAssetsTransferOrders: ['2031.00', '1120.60'],
}

t.test('x-codeSamples: each one runs and prints every digit', async (t) => {
  for (const { get } of Object.values(paths)) {
    const printed: string[] = []
    for (const sample of get['x-codeSamples']) {
      const output = await execute(sample)
      for (const amount of AMOUNTS[get.operationId] ?? []) {
        t.ok(output.includes(amount), `${get.operationId} in ${sample.label}: ${amount}`)
      }
      if (sample.label !== 'curl') printed.push(output.replaceAll('None', 'null'))
    }
    t.equal(printed[0], printed[1], `${get.operationId}: TypeScript and Python print the same`)
  }
})

const [LIST = ''] = Object.keys(paths)

t.test('samples with a limit: the same rows as curl', async (t) => {
  const query = { from: '2024-05-13', to: '2024-12-31', limit: '2' }
  const headers = { 'If-None-Match': 'W/"a\'b"', 'X-Client-Trace-ID': 'a"b"' }
  const [curl, ...clients] = codeSamples(service.url, LIST, query, headers)
  if (!curl) throw new Error('no sample for curl')
  const { items, totalItems } = JSON.parse(await execute(curl))
  t.equal(items.length, 2)
  t.ok(totalItems > 2)
  for (const sample of clients) {
    const lines = (await execute(sample)).trim().split('\n')
    t.strictSame(
      lines.map((line) => line.split(' ')[0]),
      items.map(({ operationDateDay }: { operationDateDay: string }) => operationDateDay),
      sample.label,
    )
    t.match(sample.source, 'The client has no If-None-Match: a copy asks')
  }
})

t.test('samples with a page or a version: they say what the client does itself', async (t) => {
  const [, ...clients] = codeSamples(service.url, LIST, { limit: '2', page: '1', version: '1.1' })
  for (const sample of clients) {
    t.match(sample.source, 'The client reads all pages: it has no page number')
    t.match(sample.source, 'It sends `version` itself')
    t.equal((await execute(sample)).trim().split('\n').length, 8, sample.label)
  }
})

t.test('samples with since: a copy, which a second run continues', async (t) => {
  const [, ...clients] = codeSamples(service.url, LIST, { since: 'start' })
  for (const sample of clients) {
    await rm(join(folder, 'copy.db'), { force: true })
    const [first, second] = [await execute(sample), await execute(sample)]
    t.match(first, /^8 new rows\n/, sample.label)
    t.equal(second, first.replace('8 new rows', '0 new rows'))
    t.equal(second.trim().split('\n').length, 9)
  }
})

t.test('samples with the media type of an export: the same file, and the same rows', async (t) => {
  const days = { from: '2024-01-01' }
  const csv = codeSamples(service.url, LIST, days, { Accept: 'text/csv' })
  const files: string[] = []
  for (const sample of csv) {
    await execute(sample)
    files.push(await readFile(join(folder, 'rows.csv'), 'utf8'))
    await rm(join(folder, 'rows.csv'))
  }
  t.equal(files.length, 3)
  t.match(files[0], /^transactionId,/)
  t.strictSame(new Set(files).size, 1)

  const ndjson = codeSamples(service.url, LIST, days, { Accept: 'application/x-ndjson' })
  const [, node, python] = await Promise.all(ndjson.map((sample) => execute(sample)))
  const lines = (await readFile(join(folder, 'rows.ndjson'), 'utf8')).trim().split('\n')
  t.equal(node?.trim().split('\n').length, lines.length)
  t.equal(python?.replaceAll('None', 'null'), node)
})

t.test('samples without the variables: one sentence, and exit code 1', async (t) => {
  const [, ...clients] = codeSamples(service.url, LIST)
  for (const sample of clients)
    for (const env of [{}, { APP_TOKEN: DEMO_TOKEN }]) {
      const message =
        /^Command failed: .*\n(Set the variables APP_TOKEN and CONNECTION_TOKEN.)\n\n\1\n$/
      await t.rejects(execute(sample, env), { code: 1, message }, sample.label)
    }
})

t.test('404: each sample prints the problem in one line, and fails', async (t) => {
  for (const { get } of Object.values(paths)) {
    for (const sample of get['x-codeSamples']) {
      const tokens = { ...TOKENS, CONNECTION_TOKEN: 'unknown' }
      const error = await execute(sample, tokens).catch((error: Error) => error)
      // The error of a program has its output twice.
      const lines = [...new Set(String(error).split('\n').slice(1).filter(Boolean))]
      const printed = lines.filter((line) => line.includes('connection_not_found'))
      t.equal(printed.length, 1, `${get.operationId} in ${sample.label}`)
      if (sample.label !== 'curl') t.strictSame(lines, printed, 'no traceback')
    }
  }
})
