import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { codeSamples, PLACEHOLDER } from '../../src/http/openapi/code-samples.js'
import { pythonEnvironment } from '../support/clients/drivers.ts'
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

const ROOT = join(import.meta.dirname, '../..')
const { name } = JSON.parse(await readFile(join(ROOT, 'clients/typescript/package.json'), 'utf8'))
/** A package may import itself by its name. */
const folder = t.testdir({
  'package.json': JSON.stringify({ name, type: 'module', exports: './index.ts' }),
  'index.ts': `export * from '${join(ROOT, 'clients/typescript/src/index.ts')}'`,
})

const programs: Record<string, string[]> = {
  curl: ['bash', 'sample.sh'],
  TypeScript: [process.execPath, '--disable-warning=ExperimentalWarning', 'sample.ts'],
  Python: ['python3', 'sample.py'],
}

async function execute({ label, source }: Sample, token: string = connection): Promise<string> {
  const [program = '', ...args] = programs[label] ?? []
  await writeFile(join(folder, String(args.at(-1))), source.replace(PLACEHOLDER, service.url))
  const tokens = { APP_TOKEN: DEMO_TOKEN, CONNECTION_TOKEN: token }
  return run(program, args, { cwd: folder, env: { ...pythonEnvironment, ...tokens } })
}

const { token: connection } = DEMO.wealth.connections.small

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
      const output = (await execute(sample))
        // str() of Python may use an exponent.
        .replace('6.12345E-26', '0.0000000000000000000000000612345')
      for (const amount of AMOUNTS[get.operationId] ?? []) {
        t.ok(output.includes(amount), `${get.operationId} in ${sample.label}: ${amount}`)
      }
      if (sample.label !== 'curl') printed.push(output.replaceAll('None', 'null'))
    }
    t.equal(printed[0], printed[1], `${get.operationId}: TypeScript and Python print the same`)
  }
})

t.test('samples with values of the form: their rows, on several pages', async (t) => {
  const [path = ''] = Object.keys(paths)
  const query = { from: '2024-05-13', to: '2024-12-31', limit: '1' }
  const etag = 'W/"a\'b"'
  const [curl, ...clients] = codeSamples(service.url, path, query, {
    'If-None-Match': etag,
    'X-Client-Trace-ID': 'a"b"',
  })
  if (!curl) throw new Error('no sample for curl')
  const { items, totalItems } = JSON.parse(await execute(curl))
  t.equal(items.length, 1)
  t.ok(totalItems > 1)
  for (const sample of clients) {
    const lines = (await execute(sample)).trim().split('\n')
    t.equal(lines.length, totalItems, `${sample.label}: all pages`)
    t.match(lines[0], items[0].operationDateDay)
  }
})

t.test('404: each sample prints the problem in one line, and fails', async (t) => {
  for (const { get } of Object.values(paths)) {
    for (const sample of get['x-codeSamples']) {
      const error = await execute(sample, 'unknown').catch((error: Error) => error)
      // The error of a program has its output twice.
      const lines = [...new Set(String(error).split('\n').slice(1).filter(Boolean))]
      const printed = lines.filter((line) => line.includes('connection_not_found'))
      t.equal(printed.length, 1, `${get.operationId} in ${sample.label}`)
      if (sample.label !== 'curl') t.strictSame(lines, printed, 'no traceback')
    }
  }
})
