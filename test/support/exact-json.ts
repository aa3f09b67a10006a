export interface Digits {
  digits: string
}

/** Parses JSON and replaces each number by its text, `{ digits }`, to compare it without rounding. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads a body of any shape.
export function parseExact(text: string): any {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' ? { digits: source } : value,
  )
}

/** Fields with decimals, of all endpoints. */
const DECIMALS =
  /"(exchangeRate|titles|amount|amountBaseCurrency|commission|taxes|price|retentionFrom|retentionTo)":/
    .source

/** Removes the quotes of decimals. Within a string, quotes are escaped, so nothing matches there. */
export function unquoteDecimals(json: string): string {
  return json.replaceAll(new RegExp(`(${DECIMALS})"(-?[0-9.]+)"`, 'g'), '$1$3')
}

/** Counts decimals that are numbers. */
export function countNumbers(json: string): number {
  return [...json.matchAll(new RegExp(`${DECIMALS}-?[0-9]`, 'g'))].length
}
