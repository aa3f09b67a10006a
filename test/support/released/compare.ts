import { parse } from 'csv-parse/sync'
import { parseExact } from '../exact-json.ts'

/**
 * Reads a response and a recorded one, with the fields that the recorded one has: a later release may add fields
 * (src/http/openapi/guide.md, "Compatibility"). Cursors are left out, because each belongs to a time. Numbers keep their digits.
 * @returns what must be equal
 */
export function commonFields(now: string, recorded: string, mediaType = '') {
  const read = readerOf(mediaType)
  const model = read(recorded)
  return { now: fieldsOf(read(now), model), recorded: fieldsOf(model, model) }
}

function readerOf(mediaType: string): (body: string) => unknown {
  if (mediaType === 'text/csv')
    // An empty text has quotes, and null has none.
    return (body) =>
      parse(body, { columns: true, cast: (text, { quoting }) => (quoting ? `"${text}"` : text) })
  if (mediaType === 'application/x-ndjson')
    return (body) => body.split('\n').filter(Boolean).map(parseExact)
  return parseExact
}

/** Keeps the fields that a model has, at each level. Their order is no part of the contract. */
function fieldsOf(value: unknown, model: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(model))
    return value.map((each, index) => fieldsOf(each, model[index] ?? model[0]))
  if (!isObject(value) || !isObject(model)) return value
  const names = Object.keys(model).filter((name) => name in value && name !== 'nextCursor')
  return Object.fromEntries(names.map((name) => [name, fieldsOf(value[name], model[name])]))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
