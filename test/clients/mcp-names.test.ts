import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { host, startHostService } from './mcp-host.ts'

await startHostService(t)

/** Investments of the small sample connection: a transfer order names the first one. */
const ORDERED = '044e26a3-b464-88f9-ab11-f77c95505d11'
const OTHER = '4a2ea3d4-6f1f-8475-a272-5c7eefda4c59'

t.test('names of the app come before those of transfer orders', async (t) => {
  const connections = { mine: 'DEMOSMALL1' }
  const all = { connection: 'mine', list: 'portfolio' }
  const namesOf = async (names: Record<string, string> | undefined) => {
    const { ask } = await host(t, connections, names === undefined ? {} : { names })
    const positions = await ask('check_positions', { connection: 'mine' })
    const sums = await ask('summarize', { ...all, by: ['investment'] })
    const list = await ask('list_transactions', all)
    return [positions, sums, list].map(({ rows }) =>
      [ORDERED, OTHER].map((id) => {
        return rows.find(({ investment = '' }) => investment !== '' && id.startsWith(investment))
          ?.name
      }),
    )
  }
  const ordered = [['Hispania Renovables', '']]
  t.strictSame(await namesOf(undefined), Array(3).fill(ordered[0]))
  const given = { [ORDERED]: 'My first', [OTHER]: 'My second' }
  t.strictSame(await namesOf(given), Array(3).fill(['My first', 'My second']))
})

t.test('rows without their fields are no answer', async (t) => {
  const server = createServer((_request, response) => {
    const type = 'application/json;IEEE754Compatible=true'
    response.writeHead(200, { 'content-type': type, 'data-version': 'v' })
    response.end('{"items":[{"transactionId":"a"}],"totalItems":1,"limit":1}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  t.teardown(() => server.closeAllConnections())
  const { port } = server.address() as AddressInfo
  const { ask, requests } = await host(t, { mine: 'a' }, { url: `http://127.0.0.1:${port}` })
  const { isError, text } = await ask('summarize', { connection: 'mine', list: 'portfolio' })
  t.equal(isError, true)
  t.match(
    text,
    /No data was read.+unexpected_response: A row of the response has no valid portfolioId/,
  )
  t.equal(requests(), 1)
})
