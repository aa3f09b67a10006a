/** A part of a request of a list, as a stranger may send it. */
export interface Part {
  name: string
  /** Added to the path of the list. */
  path: string
  headers?: Record<string, string>
}

/** Bytes of the longest part: Node.js reads 16 KiB of a request line and headers together. */
export const LONGEST = 15_000

const repeat = (text: string, bytes = LONGEST) => text.repeat(Math.floor(bytes / text.length))
const names = (count: number) =>
  Array.from({ length: count }, (_, n) => `${n.toString(36).padStart(3, 'a')}=`).join('&')
const manyHeaders = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`h${n}`, 'a'.repeat(7)]))

export const USUAL: Part = { name: 'usual', path: '?limit=5' }

/** Each part at its longest, in the form that costs most. */
export const PARTS: Part[] = [
  { name: 'query: 2,900 unknown names', path: `?${names(2_900)}` },
  { name: 'query: one long value', path: `?from=${repeat('1')}` },
  { name: 'query: percent-encoded', path: `?from=${repeat('%41')}` },
  { name: 'path', path: `/${repeat('a')}` },
  { name: 'headers: 900 names', path: '?limit=5', headers: manyHeaders(900) },
  { name: 'Accept', path: '?limit=5', headers: { accept: repeat('a/b;q=0.1,') } },
  { name: 'Accept-Encoding', path: '?limit=5', headers: { 'accept-encoding': repeat('a;q=0.1,') } },
  { name: 'If-None-Match', path: '?limit=5', headers: { 'if-none-match': repeat('W/"1.2",') } },
  { name: 'Range', path: '?limit=5', headers: { range: `bytes=${repeat('0')}1-` } },
]

/** Only of a caller who is unknown: a known one has a short token. */
export const AUTHORIZATION: Part = {
  name: 'Authorization',
  path: '?limit=5',
  headers: { authorization: `Bearer ${repeat('a', 8_000)}` },
}
