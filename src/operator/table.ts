import stringWidth from 'string-width'
import { escaped } from './output.ts'

/** Formats items for a terminal. Only commands with tables load this file: its library takes 20 ms. */
export function table(items: object[], whenEmpty = '', columns = terminalColumns()): string {
  const [first] = items
  if (first === undefined) return whenEmpty
  const headings = Object.keys(first).map((name) =>
    name.replaceAll(/(?=[A-Z])/g, ' ').toLowerCase(),
  )
  const lines = [headings, ...items.map((item) => Object.values(item).map(cellText))]
  const widths = headings.map((_, column) =>
    Math.max(...lines.map((line) => stringWidth(line[column] ?? ''))),
  )
  const padded = (cell: string, column: number) =>
    cell + ' '.repeat((widths[column] ?? 0) - stringWidth(cell))
  const total = widths.reduce((sum, width) => sum + width + 2, -2)
  if (total <= columns) return lines.map((line) => line.map(padded).join('  ').trimEnd()).join('\n')
  // A terminal would break the lines: a block for each item, with a heading on each line.
  const widest = Math.max(...headings.map((heading) => stringWidth(heading)))
  const block = (cells: string[]) =>
    cells.map((cell, index) => `${(headings[index] ?? '').padEnd(widest)}  ${cell}`).join('\n')
  return lines.slice(1).map(block).join('\n\n')
}

/** Columns of the terminal of standard output. A program that reads it gets whole lines. */
const terminalColumns = () =>
  process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY

function cellText(cell: unknown): string {
  if (cell === null) return '-'
  return cell instanceof Date ? cell.toISOString() : escaped(String(cell))
}
