import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { PLACEHOLDER } from '../../src/http/openapi/code-samples.ts'
import { startService } from '../support/service.ts'
import { DEMO_TOKEN, startSeededService } from './seeded-service.ts'

interface Document {
  paths: Record<string, { get: { operationId: string; 'x-codeSamples': Sample[] } }>
}
interface Sample {
  label: string
  source: string
}

const service = await startSeededService(t)
const { paths } = (await service.get('/openapi.json')).json() as Document

const programs: Record<string, (source: string) => [string, string[]]> = {
  curl: (source) => ['bash', ['-c', source]],
  TypeScript: (source) => [process.execPath, ['--input-type=module-typescript', '-e', source]],
  Python: (source) => ['python3', ['-c', source]],
}

/** Amounts of the sample data. A binary float loses trailing zeros. */
const AMOUNTS: Record<string, string[]> = {
  listPortfolioTransactions: ['406.20', '0.0000000000000000000000000612345'],
  listAccountTransactions: ['3500.00', '1.284617'],
  listAssetsTransferOrders: ['2031.00', '1120.60'],
}

t.test('x-codeSamples: each one runs and prints every digit', async (t) => {
  const { token } = DEMO.wealth.connections.small
  const env = { ...process.env, APP_TOKEN: DEMO_TOKEN, CONNECTION_TOKEN: token }
  for (const { get } of Object.values(paths)) {
    const printed: string[] = []
    for (const { label, source } of get['x-codeSamples']) {
      const program = programs[label]?.(source.replace(PLACEHOLDER, service.url))
      if (program === undefined) throw new Error(`no program for ${label}`)
      const { stdout } = await promisify(execFile)(...program, { env })
      for (const amount of AMOUNTS[get.operationId] ?? []) {
        t.ok(stdout.includes(amount), `${get.operationId} in ${label}: ${amount}`)
      }
      if (label !== 'curl') printed.push(stdout.replaceAll('None', 'null'))
    }
    t.equal(printed[0], printed[1], `${get.operationId}: TypeScript and Python print the same`)
  }
})

t.test('PUBLIC_URL: the address in all samples', async (t) => {
  const { get } = await startService(t, { environment: { PUBLIC_URL: 'https://api.example/v' } })
  const { text } = await get('/openapi.json')
  t.notMatch(text, PLACEHOLDER)
  const { paths, info } = JSON.parse(text)
  const samples = Object.values<{ get: { 'x-codeSamples': { source: string }[] } }>(paths)
    .flatMap((path) => path.get['x-codeSamples'])
    .map(({ source }) => source)
  t.equal(samples.length, 9)
  for (const written of [...samples, info.description]) {
    t.match(written, 'https://api.example/v/api/v1')
  }
})
