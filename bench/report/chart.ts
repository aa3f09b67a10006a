import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { HTTP_LIMIT } from '../load/runners.ts'
import { SERVICE } from '../servers/targets.ts'
import { today } from './measured-on.ts'

const file = join(import.meta.dirname, '../../docs/images/loads.svg')

/** Loads of the picture in README.md. bench/results/loads.md has the figures of all. */
const SHOWN = ['(a)', '(b)', '(e)']

interface Group {
  key: string
  title: string
  bars: { server: string; label: string; rate: number }[]
}

/** Writes docs/images/loads.svg: requests per second of three loads of the table. */
export async function writeChart(loadTable: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, chart(groupsOf(loadTable)))
}

/** Reads the rows of loadTable(): a row with the title of each load, then one for each server. */
function groupsOf(loadTable: string): Group[] {
  const groups: Group[] = []
  for (const line of loadTable.split('\n')) {
    const [, name = '', label = ''] = line.split('|').map((cell) => cell.trim())
    const [, key, title] = /^\*\*(\(.+?\))\*\* (.*)$/.exec(name) ?? []
    if (key) groups.push({ key, title: `${key} ${title}`, bars: [] })
    const rate = Number(label.replaceAll(',', ''))
    // The bars of a stored response would be many times as long as all others.
    if (label && rate > 0 && name !== HTTP_LIMIT)
      groups.at(-1)?.bars.push({ server: name, label, rate })
  }
  return groups.filter(({ key, bars }) => SHOWN.includes(key) && bars.length > 1)
}

// In pixels.
const WIDTH = 790
const NAMES = 200
const LONGEST = 500
const BAR = 14
const LINE = 20
const GAP = 34

/** The bars of each load are relative to its fastest server. */
function chart(groups: Group[]): string {
  const parts: string[] = []
  let y = 10
  for (const { title, bars } of groups) {
    const fastest = Math.max(...bars.map(({ rate }) => rate))
    y += GAP
    parts.push(`<text class="title" x="10" y="${y - 10}">${escaped(title)}</text>`)
    for (const { server, label, rate } of bars) {
      const width = Math.max(1, Math.round((LONGEST * rate) / fastest))
      const style = server === SERVICE ? 'service' : 'other'
      parts.push(
        `<text x="${NAMES - 8}" y="${y + 11}" text-anchor="end">${escaped(server)}</text>`,
        `<rect class="${style}" x="${NAMES}" y="${y}" width="${width}" height="${BAR}"/>`,
        `<text x="${NAMES + width + 6}" y="${y + 11}">${label}</text>`,
      )
      y += LINE
    }
  }
  y += GAP
  parts.push(`<text x="10" y="${y - 10}">Measured on ${today()}</text>`)
  const height = y
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>Requests per second by load and server</title>
<style>${STYLE}</style>
<rect class="ground" width="${WIDTH}" height="${height}"/>
${parts.join('\n')}
</svg>
`
}

const STYLE = `
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 13px }
.ground { fill: #ffffff }
.service { fill: #1a7f5a }
.other { fill: #9aa4b2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .ground { fill: #0d1117 }
  .service { fill: #3fb98a }
  .other { fill: #5d6673 }
}`

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
