import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config.ts'
import { memoryFile, type SendFile } from '../memory-file.ts'
import { PLACEHOLDER } from '../openapi/code-samples.ts'
import { type PageDocument, renderPage } from './content.ts'
import { exactDigits, pageDocument, shortOperations } from './plugins.ts'

/** Folder of the page, and of the package with Swagger UI. */
const PAGE = new URL('.', import.meta.url)
const SWAGGER_UI = new URL('static/', import.meta.resolve('@fastify/swagger-ui'))

const FILES = [
  new URL('page.css', PAGE),
  ...['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'].map(
    (name) => new URL(name, SWAGGER_UI),
  ),
]

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
}

interface DocsPageOptions {
  config: Pick<Config, 'DEMO_APP_TOKEN' | 'DEMO_CONNECTION_TOKEN'>
}

/**
 * Shows the OpenAPI document: its guide as HTML, and its operations with Swagger UI. All files come from
 * the memory of this service, so a request opens no file. The content security policy allows requests to
 * this service only.
 */
export async function docsPage(app: FastifyInstance, { config }: DocsPageOptions): Promise<void> {
  await app.register(helmet, { contentSecurityPolicy: false, strictTransportSecurity: false })
  app.addHook('onRequest', (_request, reply, done) => {
    reply.header('content-security-policy', POLICY)
    done()
  })
  const [template, demoText, script] = (await Promise.all(
    ['index.html', 'demo.md', 'page.js'].map((name) => readFile(new URL(name, PAGE), 'utf8')),
  )) as [string, string, string]
  const { DEMO_APP_TOKEN: appToken, DEMO_CONNECTION_TOKEN: connectionToken } = config
  const demo = appToken && connectionToken ? { appToken, connectionToken } : undefined
  const page = () => {
    const text = demo
      ? demoText
          .replace('{appToken}', demo.appToken)
          .replace('{connectionToken}', demo.connectionToken)
      : ''
    return renderPage(app.swagger() as object as PageDocument, template, text)
  }
  const files = new Map<string, SendFile>([
    ['page.js', memoryFile('text/javascript; charset=utf-8', () => `${variables(demo)}${script}`)],
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
  // The page lists the fields itself.
  defaultModelsExpandDepth: -1,
  defaultModelExpandDepth: 4,
  displayRequestDuration: true,
  tryItOutEnabled: false,
  filter: false,
  validatorUrl: null,
  // A token in the browser's storage would outlive the tab.
  persistAuthorization: false,
}

/** Constants that page.js uses. A plugin is the source text of its function. */
const variables = (demo?: object) => `const settings = ${JSON.stringify(settings)}
const demo = ${JSON.stringify(demo)}
const PLACEHOLDER = ${JSON.stringify(PLACEHOLDER)}
const plugins = (base) => [
  ${exactDigits},
  () => (${pageDocument})(base, PLACEHOLDER, demo),
  ${shortOperations},
]
`
