import { readFile } from 'node:fs/promises'
import { parse } from 'node:path'
import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config.ts'
import { memoryFile } from '../memory-file.ts'
import { PLACEHOLDER } from '../openapi/code-samples.ts'
import { type PageDocument, renderPage } from './content.ts'

const PAGE = new URL('.', import.meta.url)
const SWAGGER_UI = new URL('static/', import.meta.resolve('@fastify/swagger-ui'))

const FILES = [
  ...['page.css', 'plugins.js'].map((name) => new URL(name, PAGE)),
  ...['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'].map(
    (name) => new URL(name, SWAGGER_UI),
  ),
]

const SCRIPT = 'text/javascript; charset=utf-8'
const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': SCRIPT,
  '.png': 'image/png',
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * Shows the OpenAPI document: its guide as HTML, and its operations with Swagger UI. All files come from
 * the memory of this service, so a request opens no file.
 */
export async function docsPage(
  app: FastifyInstance,
  { config }: { config: Config },
): Promise<void> {
  await app.register(helmet, { contentSecurityPolicy: false, strictTransportSecurity: false })
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('content-security-policy', POLICY)
    done()
  })
  const read = (name: string) => readFile(new URL(name, PAGE), 'utf8')
  const { DEMO_APP_TOKEN: appToken, DEMO_CONNECTION_TOKEN: connectionToken } = config
  const demo = appToken && connectionToken ? { appToken, connectionToken } : undefined
  const demoText = demo
    ? (await read('demo.md'))
        .replace('{appToken}', demo.appToken)
        .replace('{connectionToken}', demo.connectionToken)
    : ''
  const template = await read('index.html')
  const page = () => renderPage(app.swagger() as object as PageDocument, template, demoText)
  const script = `const demo = ${JSON.stringify(demo)}
const PLACEHOLDER = ${JSON.stringify(PLACEHOLDER)}
${await read('page.js')}`
  const files = new Map([['page.js', memoryFile(SCRIPT, () => script)]])
  for (const url of FILES) {
    const content = await readFile(url)
    const { base, ext } = parse(url.pathname)
    const send = memoryFile(String(TYPES[ext]), () => content)
    files.set(base, send)
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
