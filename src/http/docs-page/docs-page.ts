import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { memoryFile } from '../memory-file.ts'

const FILES = {
  '/docs': ['index.html', 'text/html'],
  '/docs/static/page.css': ['page.css', 'text/css'],
  '/docs/static/page.js': ['page.js', 'text/javascript'],
  '/docs/openapi/code-samples.js': ['../openapi/code-samples.js', 'text/javascript'],
  '/docs/static/icon.svg': ['icon.svg', 'image/svg+xml'],
} as const

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Serves the page /docs, which `npm run docs:renew` builds. Its script reads the settings from /openapi.json. */
export async function docsPage(app: FastifyInstance): Promise<void> {
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({
      'content-security-policy': POLICY,
      'cross-origin-opener-policy': 'same-origin',
    })
  })
  const options = { schema: { hide: true }, compress: false } as const
  for (const [path, [name, type]] of Object.entries(FILES)) {
    const content = await readFile(new URL(name, import.meta.url))
    const send = memoryFile(
      type.startsWith('text/') ? `${type}; charset=utf-8` : type,
      () => content,
    )
    app.get(path, options, send)
  }
  // The router also takes the target `*` (RFC 9112, section 3.2.4) for this path.
  app.get('/', options, async ({ url }, reply) =>
    url.startsWith('/') ? reply.redirect('docs') : reply.callNotFound(),
  )
  app.get('/docs/', options, async (_request, reply) => reply.redirect('../docs'))
  app.get('/docs/json', options, async (_request, reply) => reply.redirect('../openapi.json'))
}
