import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { memoryFile } from '../memory-file.ts'

const SCRIPT = 'text/javascript; charset=utf-8'
const FILES = {
  'page.css': 'text/css; charset=utf-8',
  'page.js': SCRIPT,
  'code-samples.js': SCRIPT,
  'icon.svg': 'image/svg+xml',
}

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

/**
 * Serves the page /docs, which `npm run docs:renew` builds from the OpenAPI document. Its script reads what depends on
 * the settings from /openapi.json.
 */
export async function docsPage(app: FastifyInstance): Promise<void> {
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({
      'content-security-policy': POLICY,
      'cross-origin-opener-policy': 'same-origin',
    })
  })
  const options = { schema: { hide: true }, compress: false } as const
  const file = async (path: string, type: string, name: string) => {
    const content = await readFile(new URL(name, import.meta.url))
    app.get(
      path,
      options,
      memoryFile(type, () => content),
    )
  }
  await file('/docs', 'text/html; charset=utf-8', 'index.html')
  for (const [name, type] of Object.entries(FILES)) await file(`/docs/static/${name}`, type, name)
  // The router also takes the target `*` (RFC 9112, section 3.2.4) for this path.
  app.get('/', options, async ({ url }, reply) =>
    url.startsWith('/') ? reply.redirect('docs') : reply.callNotFound(),
  )
  app.get('/docs/', options, async (_request, reply) => reply.redirect('../docs'))
  app.get('/docs/json', options, async (_request, reply) => reply.redirect('../openapi.json'))
}
