import stringWidth from 'string-width'
import { escaped } from './output.ts'

/** Formats items for a terminal. Only commands with tables load this file: its library takes 20 ms. */
export function table(items: object[], whenEmpty = ''): string {
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
  return lines.map((line) => line.map(padded).join('  ').trimEnd()).join('\n')
}

function cellText(cell: unknown): string {
  if (cell === null) return '-'
  return cell instanceof Date ? cell.toISOString() : escaped(String(cell))
}
