import { readFile } from 'node:fs/promises'
import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config.ts'
import { memoryFile } from '../memory-file.ts'
import { renderPage } from './content.ts'
import type { PageDocument } from './operations.ts'

const SCRIPT = 'text/javascript; charset=utf-8'
const TYPES = {
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

/** Shows the OpenAPI document. All files come from the memory of this service, so a request opens no file. */
export async function docsPage(
  app: FastifyInstance,
  { config }: { config: Config },
): Promise<void> {
  await app.register(helmet, { contentSecurityPolicy: false, strictTransportSecurity: false })
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('content-security-policy', POLICY)
    done()
  })
  const read = (name: string) => readFile(new URL(name, import.meta.url), 'utf8')
  const { DEMO_APP_TOKEN: appToken, DEMO_CONNECTION_TOKEN: connectionToken } = config
  const demo = appToken && connectionToken ? { appToken, connectionToken } : undefined
  const demoText = demo
    ? (await read('demo.md'))
        .replace('{appToken}', demo.appToken)
        .replace('{connectionToken}', demo.connectionToken)
    : ''
  const template = await read('index.html')
  const page = () => renderPage(app.swagger() as object as PageDocument, template, demoText, demo)
  const files = new Map<string, ReturnType<typeof memoryFile>>()
  for (const [name, type] of Object.entries(TYPES)) {
    const content = await read(name)
    files.set(
      name,
      memoryFile(type, () => content),
    )
  }
  const options = { schema: { hide: true }, compress: false } as const
  app.get('/docs', options, memoryFile('text/html; charset=utf-8', page))
  // The router also takes the target `*` (RFC 9112, section 3.2.4) for this path.
  app.get('/', options, async ({ url }, reply) =>
    url.startsWith('/') ? reply.redirect('docs') : reply.callNotFound(),
  )
  app.get('/docs/', options, async (_request, reply) => reply.redirect('../docs'))
  app.get('/docs/json', options, async (_request, reply) => reply.redirect('../openapi.json'))
  app.get('/docs/static/*', options, (request, reply) => {
    const { '*': name } = request.params as { '*': string }
    return files.get(name)?.(request, reply) ?? reply.callNotFound()
  })
}
