import stringWidth from 'string-width'
import { escaped } from './output.ts'

type Cell = string | number | Date | null

/** Formats rows with headings for a terminal. Only commands with tables load this file: its library takes 20 ms. */
export function table(headings: string[], rows: Cell[][], whenEmpty = ''): string {
  if (rows.length === 0) return whenEmpty
  const lines = [headings, ...rows.map((row) => row.map(cellText))]
  const widths = headings.map((_, column) =>
    Math.max(...lines.map((line) => stringWidth(line[column] ?? ''))),
  )
  const padded = (cell: string, column: number) =>
    cell + ' '.repeat((widths[column] ?? 0) - stringWidth(cell))
  return lines.map((line) => line.map(padded).join('  ').trimEnd()).join('\n')
}

function cellText(cell: Cell): string {
  if (cell === null) return '-'
  return cell instanceof Date ? cell.toISOString() : escaped(String(cell))
}
