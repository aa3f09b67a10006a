import { readFile } from 'node:fs/promises'
import helmet from '@fastify/helmet'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, onRequestHookHandler } from 'fastify'
import { exactDigits, withoutPatterns } from './plugins.ts'

const STYLE = new URL('page.css', import.meta.url)

/**
 * Serves the OpenAPI document with Swagger UI at /docs. All files come from this service, and the
 * content security policy allows requests to this service only.
 */
export async function docsPage(app: FastifyInstance): Promise<void> {
  await app.register(helmet, { contentSecurityPolicy: false, strictTransportSecurity: false })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: POLICY,
    uiHooks: { onRequest: oneDocument },
    uiConfig: {
      plugins: [exactDigits, withoutPatterns],
      layout: 'BaseLayout',
      docExpansion: 'list',
      deepLinking: true,
      displayOperationId: false,
      defaultModelsExpandDepth: 0,
      defaultModelExpandDepth: 4,
      displayRequestDuration: true,
      tryItOutEnabled: false,
      filter: false,
      // A token in the browser's storage would outlive the tab.
      persistAuthorization: false,
    },
    theme: {
      title: 'Investment Data Query Service',
      css: [{ filename: 'page.css', content: await readFile(STYLE, 'utf8') }],
    },
  })
}

/** Serves one document only: the plugin's YAML copy would have rounded numbers. */
const oneDocument: onRequestHookHandler = (request, reply, done) => {
  const { url } = request.routeOptions
  if (url === '/docs/json') reply.redirect('../openapi.json')
  else if (url === '/docs/yaml') reply.callNotFound()
  else done()
}

const POLICY = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': ["'self'", 'data:'],
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
}
