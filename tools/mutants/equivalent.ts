/**
 * Mutants that no test can kill, by file and by the changed line before and after, with the reason.
 * tools/mutants/run.ts does not try them, and does not count them.
 */
export const equivalent: Record<string, Record<string, string>> = {
  'src/http/authentication.ts': {
    'const JWT = /^[\\w-]+\\.[\\w-]+\\.[\\w-]*$/ -> const JWT = /[\\w-]+\\.[\\w-]+\\.[\\w-]*$/':
      'App tokens contain no dot, so both ways end with invalid_token.',
    'const JWT = /^[\\w-]+\\.[\\w-]+\\.[\\w-]*$/ -> const JWT = /^[\\w-]+\\.[\\w-]+\\.[\\w-]*/':
      'App tokens contain no dot, so both ways end with invalid_token.',
  },
  'src/http/identity-provider.ts': {
    "const hash = tokenHash(token).toString('base64') -> const hash = tokenHash(token).toString('')":
      'It then decodes the hash as UTF-8. No known tokens have the same hash in that form.',
    'if (cached !== undefined && Date.now() < cached.expiresAt) return cached.clientId -> if (cached !== undefined && Date.now() <= cached.expiresAt) return cached.clientId':
      'In this millisecond, the token is verified again, and is still valid.',
  },
  'src/http/http-server.ts': {
    'maxHeaderSize: MAX_HEADER_BYTES, -> ...{},': 'It is the default of Node.js.',
    'if (socket.parser) socket.parser.onIncoming = () => 2 -> if (socket.parser) socket.parser.onIncoming = () => 3':
      'The parser of Node.js then ends with an error, and the socket is destroyed in the same turn.',
    'connectionsCheckingInterval: 1_000, -> connectionsCheckingInterval: 0,':
      'Node.js then checks the timeouts each millisecond, with the same results.',
  },
  'src/http/quota.ts': {
    'const RESPONSE_TIMEOUT_MS = 500 -> const RESPONSE_TIMEOUT_MS = 501':
      'No test can distinguish these times.',
    'child() { return this } -> child() {}':
      'Only options of a route call it. The types of @fastify/rate-limit require it.',
    'timeWindow: WINDOW_MS, -> ...{},': 'It is the default of @fastify/rate-limit.',
  },
  'src/postgres/hosts.ts': {
    "const [url = '', ...others] = this.#urls -> const [url = 'x', ...others] = this.#urls":
      'The settings have at least one URL. Only the type needs the default.',
  },
  'migrations/0005-versions.ts': {
    'ordinal := ordinal + 1; -> ordinal := ordinal - 1;':
      'Removals of a statement then have descending numbers of the same range. Their order has no meaning.',
  },
  'tools/embedded-postgres/account.ts': {
    'if (uid && gid) return { uid: Number(uid), gid: Number(gid) } -> if (uid || gid) return { uid: Number(uid), gid: Number(gid) }':
      'A line of /etc/passwd has both.',
  },
  'clients/examples/list-transactions.ts': {
    'return Math.max(0, ms || 0) -> return Math.max(1, ms || 0)':
      'No test can distinguish a wait of 1 ms.',
  },
  'clients/typescript/src/http.ts': {
    "const type = response.headers.get('content-type') ?? '' -> const type = response.headers.get('content-type') ?? 'x'":
      'Neither text is one of the media types of the service.',
  },
}
