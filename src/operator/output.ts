import stringWidth from 'string-width'

export function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

const PROGRESS_MS = 5_000

/** Returns a function that reports a number of connections, at most once in PROGRESS_MS. */
export function progressOf(notice: (sentence: string) => void, done: string) {
  let last = performance.now()
  return (connections: number) => {
    if (performance.now() - last < PROGRESS_MS) return
    last = performance.now()
    notice(`${pluralize(connections, 'connection')} ${done} so far.`)
  }
}

type Cell = string | number | Date | null

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

/**
 * Escapes control and bidirectional characters as in JSON, e.g. \u009b: names and input must not
 * control the terminal. JSON stays the same JSON.
 * @param characters replaces the characters to escape
 */
export function escaped(text: string, characters = /\p{C}/gu): string {
  return text.replace(characters, (character) =>
    Array.from({ length: character.length }, (_, at) => {
      return `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`
    }).join(''),
  )
}

/** Writes JSON for a terminal. */
export function toJson(value: object): string {
  return escaped(JSON.stringify(value))
}

/** Escapes these characters in each line of a text. Keeps line breaks. */
export function printable(text: string): string {
  return text
    .split('\n')
    .map((line) => escaped(line))
    .join('\n')
}
