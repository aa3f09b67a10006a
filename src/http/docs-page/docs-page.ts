import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import { memoryFile, type SendFile } from '../memory-file.ts'
import { exactDigits, withoutPatterns } from './plugins.ts'

/** Folder of the page, and of the package with Swagger UI. */
const PAGE = new URL('.', import.meta.url)
const SWAGGER_UI = new URL('static/', import.meta.resolve('@fastify/swagger-ui'))

const FILES = [
  new URL('page.css', PAGE),
  ...['swagger-ui.css', 'index.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'].map(
    (name) => new URL(name, SWAGGER_UI),
  ),
]

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
}

/**
 * Shows the OpenAPI document with Swagger UI. All files come from the memory of this service, and the
 * content security policy allows requests to this service only.
 */
export async function docsPage(app: FastifyInstance): Promise<void> {
  await app.register(helmet, { contentSecurityPolicy: false, strictTransportSecurity: false })
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('content-security-policy', POLICY)
    done()
  })
  const page = await readFile(new URL('index.html', PAGE))
  const files = new Map<string, SendFile>([
    ['page.js', memoryFile('text/javascript; charset=utf-8', () => script)],
  ])
  for (const url of FILES) {
    const content = await readFile(url)
    const name = url.pathname.slice(url.pathname.lastIndexOf('/') + 1)
    files.set(
      name,
      memoryFile(String(TYPES[extname(name)]), () => content),
    )
  }
  const options = { schema: { hide: true }, compress: false } as const
  app.get(
    '/docs',
    options,
    memoryFile('text/html; charset=utf-8', () => page),
  )
  app.get('/docs/', options, async (_request, reply) => reply.redirect('../docs'))
  app.get('/docs/json', options, async (_request, reply) => reply.redirect('../openapi.json'))
  app.get('/docs/static/*', options, (request, reply) => {
    const { '*': name } = request.params as { '*': string }
    return files.get(name)?.(request, reply) ?? reply.callNotFound()
  })
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

const settings = {
  dom_id: '#swagger-ui',
  layout: 'BaseLayout',
  docExpansion: 'list',
  deepLinking: true,
  displayOperationId: false,
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 4,
  displayRequestDuration: true,
  tryItOutEnabled: false,
  filter: false,
  validatorUrl: null,
  // A token in the browser's storage would outlive the tab.
  persistAuthorization: false,
}

const script = `SwaggerUIBundle({
  ...${JSON.stringify(settings)},
  url: new URL('../../openapi.json', document.currentScript.src).href,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [${exactDigits}, ${withoutPatterns}],
})`
