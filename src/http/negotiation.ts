import { type Format, MEDIA_TYPES } from '../schemas/list.ts'

/** Formats by media range, in lower case. A range without a name selects the default. */
const RANGES = new Map<string, Format>([
  ['*/*', 'json'],
  ['application/*', 'json'],
  ...Object.entries(MEDIA_TYPES).map(
    ([format, type]) => [type.toLowerCase(), format as Format] as const,
  ),
])

/** Matches each header that can select another format than the default. Most match nothing. */
const OTHER_FORMAT = /ieee754compatible|ndjson|csv/i
const RANGE = /(?:[^,"]|"(?:\\.|[^"\\])*"?)+/g
const WEIGHT = /;[ \t]*q=([^; \t]*)/
const EXACT = /;[ \t]*ieee754compatible=(?:true|"true")[ \t]*(?:;|$)/

/** Selects the format of a response (RFC 9110, section 12.5.1). A header that accepts none has no effect. */
export function negotiate(accept: string | undefined, formats: readonly Format[]): Format {
  // Unlike the package negotiator, it gives no CSV to a browser that accepts `text/*`, and ignores `charset`.
  if (accept === undefined || !OTHER_FORMAT.test(accept)) return 'json'
  const choices = (accept.toLowerCase().match(RANGE) ?? []).flatMap((range) => {
    const weight = Number(WEIGHT.exec(range)?.[1] ?? 1)
    const name = range.replace(/;.*/, '').trim()
    const names = EXACT.test(range) ? [`${name};ieee754compatible=true`, name] : [name]
    const found = names.map((each) => RANGES.get(each)).filter((format) => format !== undefined)
    const format = found.find((each) => formats.includes(each))
    if (format === undefined || !(weight > 0 && weight <= 1)) return []
    const precision = Number(format.startsWith('exact')) - name.split('*').length
    return [{ format, weight, precision }]
  })
  // At the same weight and precision, the first range wins.
  choices.sort((a, b) => b.weight - a.weight || b.precision - a.precision)
  return choices[0]?.format ?? 'json'
}
