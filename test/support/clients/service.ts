import { parseExact } from '../exact-json.ts'
import type { Caller, TestConnection } from '../rows.ts'
import type { Service } from '../service.ts'
import type { Access, ListName, Row } from './drivers.ts'

export const accessOf = ({ url }: { url: string }, { token, connection }: Caller): Access => ({
  url,
  token,
  connection: connection.token,
})

/** Rows of a list in one response of the service, with decimals as the text of their digits. */
export async function readList(
  { get }: Service,
  { token, connection }: Pick<Caller, 'token'> & { connection: Omit<TestConnection, 'id'> },
  list: ListName,
  query = '',
): Promise<Row[]> {
  const { text } = await get(`${connection[list]}?limit=10000${query}`, { token })
  return digitsAsText(parseExact(text).items) as Row[]
}

/** Replaces `{ digits }` of parseExact() by the text. */
export function digitsAsText(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(digitsAsText)
  if (typeof value !== 'object' || value === null) return value
  if ('digits' in value) return value.digits
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, digitsAsText(inner)]),
  )
}
