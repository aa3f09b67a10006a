import type { RequestListener, Server } from 'node:http'
import type { Socket } from 'node:net'

/** Node.js documents no other way to end the parser of a socket. */
interface ParsedSocket extends Socket {
  parser?: { onIncoming: () => number }
}

/** Serves one request at a time on a socket. A pipelined one closes it: its response would wait in memory. */
export function serveOneByOne(server: Server, handler: RequestListener): void {
  server.on('request', (request, response) => {
    const socket: ParsedSocket = request.socket
    // The socket belongs to the response before this one.
    if (response.socket === null) {
      // 2 ends the parser. It would otherwise parse 2,400 requests of a chunk, which takes 0.1 s.
      if (socket.parser) socket.parser.onIncoming = () => 2
      socket.resetAndDestroy()
      return
    }
    handler(request, response)
  })
}
