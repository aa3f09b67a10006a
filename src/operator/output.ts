/** A number and what it counts: `1 token`, `2 tokens`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

type Cell = string | number | Date | null

/** Rows in columns, under the names of their members. */
export function table(rows: Record<string, Cell>[], whenEmpty: string): string {
  const [first] = rows
  if (!first) return whenEmpty
  const lines = [Object.keys(first), ...rows.map((row) => Object.values(row).map(shown))]
  const widths = Object.keys(first).map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  )
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function shown(cell: Cell): string {
  if (cell === null) return '-'
  // What others named must not reach the terminal as a control sequence.
  return cell instanceof Date ? cell.toISOString() : String(cell).replace(/\p{C}/gu, '�')
}
