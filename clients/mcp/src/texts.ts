/** Longest texts of an institution in an answer. The names of codes, hours and time zones are short. */
const MAX_DESCRIPTION = 120
const MAX_SHORT_TEXT = 40

/**
 * Control characters, invisible format characters, white space and halves of characters. A description with line
 * breaks or tabs would otherwise look like more rows.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}]+/gu

function oneLine(text: string, maxLength: number): string {
  const characters = [...text.replaceAll(UNSAFE, ' ').trim()]
  if (characters.length <= maxLength) return characters.join('')
  return `${characters.slice(0, maxLength - 1).join('')}…`
}

/** Returns a description or a name as one short line. Its end is cut with "…". */
export const description = (text: string | null) => oneLine(text ?? '', MAX_DESCRIPTION)

/** Returns a code or another short text of the institution as one line. */
export const shortText = (text: string | null) => oneLine(text ?? '', MAX_SHORT_TEXT)
