/** node:http with the service's own client of PostgreSQL, statements and writer of rows. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { readUrl, respond } from '../servers/floor.ts'

createServer((request, response) => {
  handle(request, response).catch((error) => {
    process.stderr.write(`${error.stack}\n`)
    response.writeHead(500).end()
  })
}).listen(Number(process.env.PORT), '127.0.0.1')

async function handle({ url = '', headers }: IncomingMessage, response: ServerResponse) {
  const asked = readUrl(url)
  if (asked === undefined) {
    response.writeHead(404).end()
    return
  }
  const { authorization, 'if-none-match': ifNoneMatch } = headers
  const found = await respond({ ...asked, authorization, ifNoneMatch })
  response.once('close', found.end)
  const { status, body } = found
  const length = status === 304 ? {} : { 'content-length': body.length }
  response.writeHead(status, { ...found.headers, ...length }).end(body)
}
