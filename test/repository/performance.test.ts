import { readdir, readFile } from 'node:fs/promises'
import { t } from 'tap'

const read = (name: string) => readFile(new URL(`../../${name}`, import.meta.url), 'utf8')

/** What a load is, and not what it takes. */
const LOADS = ['10 KB']

const results = await readdir(new URL('../../bench/results/', import.meta.url))

t.test('performance: each measured part begins with its date', async (t) => {
  const pages = ['docs/performance.md', ...results.map((name) => `bench/results/${name}`)]
  for (const page of pages) {
    const parts = [...(await read(page)).matchAll(/^<!-- ([\w-]+): begin -->\n\n(.*)/gm)]
    t.ok(parts.length > 0, page)
    for (const [, part, line] of parts)
      t.match(line, /^Measured on 20\d\d-\d\d-\d\d\b/, `${page}: ${part}`)
  }
})

t.test('performance: a file of results has the part of its name, and nothing else', async (t) => {
  for (const name of results) {
    const part = name.replace('.md', '')
    const text = (await read(`bench/results/${name}`)).trimEnd()
    t.match(text, `\n\n<!-- ${part}: begin -->\n\n`, name)
    t.ok(text.endsWith(`<!-- ${part}: end -->`), name)
  }
})

t.test('performance: the picture is of the day of the tables that it shows', async (t) => {
  const picture = await read('docs/images/loads.svg')
  const [, day] = /Measured on (\S+)</.exec(picture) ?? []
  t.ok(day)
  const parts = { 'docs/performance.md': 'summary', 'bench/results/loads.md': 'loads' }
  for (const [page, part] of Object.entries(parts))
    t.match(await read(page), `<!-- ${part}: begin -->\n\nMeasured on ${day}`, page)
})

t.test('performance: no measured figure is typed beside the tables of the bench', async (t) => {
  const typed =
    /\b\d[\d.,]*(?: to \d[\d.,]*)? (?:ms|µs|[kKMG]i?B|rows\/s|requests\/s|%(?! of the highest rate))/g
  for (const page of ['docs/performance.md', 'bench/README.md']) {
    const parts = /<!-- ([\w-]+): begin -->[\s\S]*?<!-- \1: end -->/g
    const figures = (await read(page)).replaceAll(parts, '').match(typed) ?? []
    t.strictSame(
      figures.filter((figure) => !LOADS.includes(figure)),
      [],
      page,
    )
  }
})
