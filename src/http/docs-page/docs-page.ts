import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config.ts'
import { memoryFile, type SendFile } from '../memory-file.ts'
import { PLACEHOLDER } from '../openapi/code-samples.js'

/** Files of the page in this folder, besides the page. */
const STATIC = [
  'calculator.js',
  'code.js',
  'dom.js',
  'icon.svg',
  'markdown.js',
  'navigation.js',
  'operations.js',
  'page.css',
  'page.js',
  'sandbox.js',
  'search.js',
  'search-words.js',
  'settings.js',
  'theme.js',
]

/** Requests with public tokens, and their results. */
const STORIES = 'stories.json'

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
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

type PageConfig = Pick<Config, 'CONTACT_URL' | 'DEMO_TOKENS' | 'MAX_LIMIT' | 'PUBLIC_URL'>

/** What the page shows of this service. Without PUBLIC_URL, it shows the address at which the browser sees it. */
function settingsOf({ CONTACT_URL, DEMO_TOKENS, MAX_LIMIT, PUBLIC_URL }: PageConfig) {
  const [appToken, connectionToken] = DEMO_TOKENS?.split(',') ?? []
  return {
    address: PUBLIC_URL?.replace(/\/+$/, ''),
    contact: CONTACT_URL,
    maximumLimit: MAX_LIMIT,
    demo: appToken && { appToken, connectionToken },
  }
}

/**
 * Serves the page /docs, and /docs.md and /llms.txt for programs. `npm run docs:renew` builds the page and /docs.md. The
 * page is the same file everywhere: its script shows the settings of this service.
 */
export async function docsPage(
  app: FastifyInstance,
  { config }: { config: PageConfig },
): Promise<void> {
  // Replaces the policy of data, which the hook of all routes has set before. Errors of these paths get it, too.
  app.addHook('onSend', async (_request, reply) => {
    reply.headers({
      'content-security-policy': POLICY,
      'cross-origin-opener-policy': 'same-origin',
    })
  })
  const options = { schema: { hide: true }, compress: false } as const
  const read = async (file: URL): Promise<SendFile> => {
    const content = await readFile(file)
    return memoryFile(TYPES[extname(file.pathname)] ?? 'application/octet-stream', () => content)
  }
  const here = (name: string) => new URL(name, import.meta.url)
  const files = new Map<string, SendFile>()
  for (const name of STATIC) files.set(name, await read(here(name)))
  // Other services have no public tokens: the page names none.
  if (config.DEMO_TOKENS !== undefined) files.set(STORIES, await read(here(STORIES)))
  const settings = JSON.stringify(settingsOf(config))
  files.set(
    'settings.json',
    memoryFile(TYPES['.json'] ?? '', () => settings),
  )
  // The page loads it when its search is first used.
  files.set('minisearch.js', await read(new URL(import.meta.resolve('minisearch'))))

  app.get('/docs', options, await read(here('index.html')))
  for (const name of ['docs.md', 'llms.txt']) {
    const text = await readFile(here(name), 'utf8')
    const address = config.PUBLIC_URL?.replace(/\/+$/, '') ?? PLACEHOLDER
    const content = text.replaceAll(PLACEHOLDER, address)
    app.get(
      `/${name}`,
      options,
      memoryFile(TYPES[extname(name)] ?? '', () => content),
    )
  }
  const samples = await read(here('../openapi/code-samples.js'))
  app.get('/docs/openapi/code-samples.js', options, samples)
  app.get<{ Params: { name: string } }>('/docs/static/:name', options, async (request, reply) => {
    const send = files.get(request.params.name)
    return send ? send(request, reply) : reply.callNotFound()
  })
  // The router also takes the target `*` (RFC 9112, section 3.2.4) for this path.
  app.get('/', options, async ({ url }, reply) =>
    url.startsWith('/') ? reply.redirect('docs') : reply.callNotFound(),
  )
  app.get('/docs/', options, async (_request, reply) => reply.redirect('../docs'))
  app.get('/docs/json', options, async (_request, reply) => reply.redirect('../openapi.json'))
}
