/** Most bytes of an answer: 8,000 tokens of 3 bytes. */
const MAX_BYTES = 24_000
/** Left for the line of JSON above a table. */
const MAX_TABLE_BYTES = MAX_BYTES - 1_500

/** A line of a table: its texts by column. Columns that are empty in all lines are left out. */
export type Line = Record<string, string>

/** Part of a table that fits into an answer. */
export interface Part {
  facts: { total: number; truncated: boolean; nextOffset?: number }
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
  const columns = columnsOf(lines)
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
  const nextOffset = offset + shown
  const table = shown === 0 ? '' : texts.join('\n')
  if (nextOffset >= total) return { facts: { total, truncated: offset > 0 }, table }
  return { facts: { total, truncated: true, nextOffset }, table }
}

function columnsOf(lines: Line[]): string[] {
  const columns = new Set<string>()
  for (const line of lines) for (const column of Object.keys(line)) columns.add(column)
  return [...columns].filter((column) => lines.some((line) => Boolean(line[column])))
}
