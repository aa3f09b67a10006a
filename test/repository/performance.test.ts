import { readFile } from 'node:fs/promises'
import { t } from 'tap'

const read = (name: string) => readFile(new URL(`../../${name}`, import.meta.url), 'utf8')

const PAGES = ['docs/performance.md', 'bench/README.md']

t.test('performance: each measured part begins with its date', async (t) => {
  for (const page of PAGES) {
    const parts = [...(await read(page)).matchAll(/^<!-- ([\w-]+): begin -->\n\n(.*)/gm)]
    t.ok(parts.length >= 4, page)
    for (const [, part, line] of parts)
      t.match(line, /^Measured on 20\d\d-\d\d-\d\d\b/, `${page}: ${part}`)
  }
})

t.test('performance: the picture is of the day of the tables that it shows', async (t) => {
  const picture = await read('docs/images/loads.svg')
  const [, day] = /Measured on (\S+)</.exec(picture) ?? []
  t.ok(day)
  const parts = { 'docs/performance.md': 'summary', 'bench/README.md': 'loads' }
  for (const [page, part] of Object.entries(parts))
    t.match(await read(page), `<!-- ${part}: begin -->\n\nMeasured on ${day}`, page)
})
