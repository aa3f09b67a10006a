import { readFile } from 'node:fs/promises'
import t from 'tap'
import { startSeededService } from '../support/seeded-service.ts'

interface Request {
  title: string
  url: string
  headers: Record<string, string>
}

/** Reads a file of requests as the HTTP clients of editors do: variables, then requests after a line of `###`. */
function requestsOf(text: string): Request[] {
  const [head = '', ...blocks] = text.split(/^### /m)
  const variables = [...head.matchAll(/^@(\w+) = (.*)$/gm)]
  // A variable may have those before it.
  const filled = variables.reduceRight(
    (all, [, name, value = '']) => all.map((each) => each.replaceAll(`{{${name}}}`, value)),
    blocks,
  )
  return filled.map((block) => {
    const [title = '', request = '', ...headers] = block.trim().split('\n')
    const fields = headers.map((line) => line.split(': '))
    return { title, url: request.replace('GET ', ''), headers: Object.fromEntries(fields) }
  })
}

t.test('requests.http: each request gets 200 with rows of the sample data', async (t) => {
  const service = await startSeededService(t)
  const requests = requestsOf(await readFile('clients/examples/requests.http', 'utf8'))
  t.equal(requests.length, 5)
  for (const { title, url, headers } of requests) {
    const response = await fetch(url.replace('http://127.0.0.1:3000', service.url), { headers })
    t.equal(response.status, 200, title)
    t.match(response.headers.get('content-type'), headers.Accept ?? 'application/json', title)
    t.match(await response.text(), /DEMO|EUR/, title)
  }
})
