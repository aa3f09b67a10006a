import { createServer } from 'node:http'

/** The limit of HTTP in Node: stored responses of the size that the path names. */
const bodies = new Map<string, Buffer>()

createServer((request, response) => {
  const path = request.url ?? '/'
  let body = bodies.get(path)
  if (body === undefined) {
    body = Buffer.alloc(Number(path.slice(1)), 'x')
    bodies.set(path, body)
  }
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
  })
  response.end(body)
}).listen(Number(process.env.PORT), '127.0.0.1')
