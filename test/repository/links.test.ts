import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { t } from 'tap'
import { startService } from '../support/service.ts'

const read = (path: string) => readFileSync(path, 'utf8')

const LEFT_OUT = [
  'test/repository/links.test.ts',
  '**/node_modules/**',
  '.git/**',
  '.data/**',
  // Results of generators, and texts of earlier releases.
  '**/package-lock.json',
  'docs/reference/**/*.json',
  'docs/reference/openapi.ts',
  'test/support/released/*.{sql,json,yml}',
]

/** Texts with names of pages: documents, code, messages, alerts, manifests, units and scripts. */
const TEXTS = globSync(
  [
    '**/*.{md,ts,js,mjs,cjs,py,sql,yml,yaml,toml,txt,html,css,cfg,conf,service,timer,java}',
    '{**/*.json,{deploy,.ci,.github}/**/*,Dockerfile,.env.example,operator}',
  ],
  { exclude: LEFT_OUT, withFileTypes: true },
)
  .filter((entry) => entry.isFile())
  .map((entry) => normalize(join(entry.parentPath, entry.name)))
  .map((path) => path.replace(`${process.cwd()}/`, ''))

const PAGES = TEXTS.filter((path) => path.endsWith('.md'))

/** Parts of the page /docs. Their links begin at the page, not at their folder. */
const PARTS_OF_THE_PAGE = [
  'src/http/openapi/guide.md',
  'src/http/docs-page/docs.md',
  'src/http/docs-page/llms.txt',
  'tools/docs/page/demo.md',
]

/** Pages of release 1.0.0 that the changelog names. */
const OF_RELEASE_1 = [
  'docs/operations.md',
  'docs/decisions.md',
  'docs/growth.md',
  'docs/compatibility.md',
]

const withoutCode = (markdown: string) => markdown.replaceAll(/^( *)```.*?^\1```/gms, '')

/** Returns the anchors of the headings of a page, as code hosts make them. */
function anchorsOf(path: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, title = ''] of withoutCode(read(path)).matchAll(/^#+ (.+)$/gm)) {
    const text = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = text.replaceAll(/[^\w\s-]/g, '').replaceAll(/\s/g, '-')
    let unique = anchor
    for (let count = 1; anchors.has(unique); count++) unique = `${anchor}-${count}`
    anchors.add(unique)
  }
  return anchors
}

/** Returns what is wrong with a link to a file of this repository, or nothing. */
function faultOf(path: string, anchor: string | undefined): string | undefined {
  if (!existsSync(path)) return 'no such file'
  if (!path.endsWith('.md')) return undefined
  if (anchor !== undefined && !anchorsOf(path).has(anchor)) return 'no such heading'
  return undefined
}

/** Returns the file that a text means by a name such as runbook.md or docs/runbook.md. */
function fileOf(name: string, from: string): string | undefined {
  const folders = ['.', dirname(from), 'docs', 'docs/tutorials']
  const paths = folders.map((folder) => normalize(join(folder, name)))
  return paths.find((path) => existsSync(path))
}

t.test('links: each relative link of a document has a target', (t) => {
  let found = 0
  for (const page of PAGES) {
    if (PARTS_OF_THE_PAGE.includes(page)) continue
    const links = withoutCode(read(page)).matchAll(
      /\]\(((?!\w+:)[^)#\s]*)(?:#([^)\s]+))?\)|(?:^\[[^\]]+\]: | src=")((?!\w+:)[^\s"]+)/gm,
    )
    for (const [link, target, anchor, defined] of links) {
      const name = decodeURI(target ?? defined ?? '')
      const path = name === '' ? page : normalize(join(dirname(page), name))
      t.equal(faultOf(path, anchor), undefined, `${page}: ${link}`)
      found += 1
    }
  }
  t.ok(found > 200, `${found} links`)
  t.end()
})

t.test('README.md: each page is at most two clicks away', (t) => {
  let near = new Set(['README.md'])
  for (let clicks = 1; clicks <= 2; clicks++)
    near = new Set([...near, ...[...near].flatMap(pagesOf)])
  for (const page of PAGES) {
    // bench/README.md links the tables of the bench: nobody has to read them.
    if (page !== 'tools/docs/page/demo.md' && !page.startsWith('bench/results/'))
      t.ok(near.has(page), page)
  }
  t.end()
})

/** Returns the pages that a page links. */
function pagesOf(page: string): string[] {
  const links = [...withoutCode(read(page)).matchAll(/\]\(((?!\w+:)[^)#\s]+\.md)/g)]
  return links.map(([, target = '']) => normalize(join(dirname(page), target))).filter(existsSync)
}

t.test('names: each page that a text names exists, with its heading', (t) => {
  let found = 0
  for (const path of TEXTS) {
    // Names with a folder or in a sentence, such as docs/runbook.md#servicedown. Not https://host/page.md, and not the text of
    // a link.
    const names = read(path).matchAll(
      /(?<![\w/.:*}$-]|\]\()((?:\.{0,2}[\w-]+\/)*[\w-]+\.md)\b(?!\]\()(?:#([\w-]+)|(?: \(|, )"([^"\n]+)")?/g,
    )
    for (const [text, name = '', anchor, heading] of names) {
      if (isOther(path, name)) continue
      const file = fileOf(name, path)
      const place = anchor ?? heading?.toLowerCase().replaceAll(' ', '-')
      const fault = file === undefined ? 'no such file' : faultOf(file, place)
      t.equal(fault, undefined, `${path}: ${text}`)
      found += 1
    }
  }
  t.ok(found > 150, `${found} names`)
  t.end()
})

/** True for names that are not those of a page: a route of the service, and pages of 1.0.0 in the changelog. */
function isOther(path: string, name: string): boolean {
  const isOfRelease = path === 'CHANGELOG.md' && OF_RELEASE_1.includes(name)
  return name === 'docs.md' || isOfRelease
}

t.test('links: each absolute link into this repository has a target', (t) => {
  const link =
    /https?:\/\/[^\s)"'`]*\/investment-data-query-service\/(?:blob|tree|raw)\/[^/\s]+\/([\w./-]+)(?:#([\w-]+))?/g
  for (const path of TEXTS)
    for (const [text, target = '', anchor] of read(path).matchAll(link))
      t.equal(faultOf(target, anchor), undefined, `${path}: ${text}`)
  t.end()
})

t.test('/docs: each link of the page, of its parts and to it has a target', async (t) => {
  const { get } = await startService(t)
  const { text: html } = await get('/docs')
  const ids = new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => String(id)))
  const targets = [...html.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, target]) => String(target))
  for (const part of PARTS_OF_THE_PAGE) {
    const links = withoutCode(read(part)).matchAll(/\]\(([^)\s]+)\)/g)
    targets.push(...[...links].map(([, target]) => String(target)))
  }
  for (const path of TEXTS) {
    const names = read(path).matchAll(/(?<![\w])\/docs(#[a-z][\w-]*)/g)
    targets.push(...[...names].map(([, anchor]) => String(anchor)))
  }
  t.ok(targets.length > 100, `${targets.length} links`)
  for (const target of new Set(targets)) {
    if (/^\w+:/.test(target)) continue
    if (target.startsWith('#')) t.ok(ids.has(target.slice(1)), target)
    else t.equal((await get(`/${target}`)).status, 200, target)
  }
})
