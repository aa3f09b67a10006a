/** Most bytes of an answer: 8,000 tokens of 3 bytes. */
const MAX_BYTES = 24_000
/** Left for the line of JSON above a table. */
const MAX_TABLE_BYTES = MAX_BYTES - 2_000

/**
 * A line of a table: its texts by column, in their order. An empty text is an unknown value. `undefined` is a cell that
 * does not apply.
 */
export type Line = Record<string, string | undefined>

/** Returns the cell of a value that is null if it is unknown, and undefined if it does not apply. */
export const cellOf = (value: string | null | undefined) => (value === null ? '' : value)

/** Part of a table that fits into an answer. */
export interface Part {
  facts: {
    total: number
    truncated: boolean
    nextOffset?: number
    /** Columns that the table leaves out, because no row of it knows a value. */
    unknownInAllRows?: string[]
  }
  table: string
}

/**
 * Returns the lines of a part as a table with tabs, which takes a quarter of the tokens of JSON. The part
 * ends before it exceeds the limit of an answer.
 * @param lines those of the part
 * @param offset number of the lines before the part
 * @param total number of all lines
 */
export function partOf(lines: Line[], offset: number, total: number): Part {
  const { columns, unknown } = columnsOf(lines)
  const texts = [columns.join('\t')]
  let bytes = Buffer.byteLength(texts.join(''))
  let shown = 0
  for (const line of lines) {
    const text = columns.map((column) => line[column] ?? '').join('\t')
    bytes += Buffer.byteLength(text) + 1
    if (bytes > MAX_TABLE_BYTES) break
    texts.push(text)
    shown += 1
  }
  const table = shown === 0 ? '' : texts.join('\n')
  const nextOffset = offset + shown
  const rest = nextOffset >= total ? {} : { nextOffset }
  const truncated = offset > 0 || nextOffset < total
  const unknownInAllRows = unknown.length === 0 ? {} : { unknownInAllRows: unknown }
  return { facts: { total, truncated, ...rest, ...unknownInAllRows }, table }
}

/** Returns the columns with a text, and those that are unknown in all lines. */
function columnsOf(lines: Line[]) {
  const isKnown = new Map<string, boolean | undefined>()
  for (const line of lines)
    for (const [column, text] of Object.entries(line)) {
      const before = isKnown.get(column)
      isKnown.set(column, text === undefined ? before : before || text !== '')
    }
  const all = [...isKnown.keys()]
  return {
    columns: all.filter((column) => isKnown.get(column) === true),
    unknown: all.filter((column) => isKnown.get(column) === false),
  }
}
