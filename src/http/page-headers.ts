import type { ListRequest, ReadResponse } from '../queries/read.ts'
import { EXPORTS } from '../schemas/list.ts'

/** Headers of pages, changes and exports, which a list without pages does not have. */
export function pageHeaders(
  name: string,
  request: ListRequest,
  { lookup, nextCursor }: ReadResponse,
): Record<string, string | number> {
  if (EXPORTS.has(request.format)) return exportHeaders(name, request, lookup.totalItems)
  // Links (RFC 8288, contract 23) are relative: the path has the connection token, and proxies log headers (contract 21).
  if (request.since !== undefined) return { link: changesLink(request.limit, nextCursor) }
  return { link: pageLink(request, lookup.totalItems) }
}

function exportHeaders(name: string, { format, from, to }: ListRequest, totalItems: number) {
  const parts = [name]
  if (from) parts.push(`from-${from}`)
  if (to) parts.push(`to-${to}`)
  const suffix = format === 'csv' ? 'csv' : 'ndjson'
  return {
    'x-total-count': totalItems,
    'content-disposition': `attachment; filename="${parts.join('-')}.${suffix}"`,
  }
}

function changesLink(limit: number, nextCursor: string | undefined): string {
  const first = `<?since=start&limit=${limit}>; rel="first"`
  return nextCursor ? `${first}, <?since=${nextCursor}&limit=${limit}>; rel="next"` : first
}

function pageLink({ from, to, limit, page, version }: ListRequest, totalItems: number): string {
  const last = Math.max(0, Math.ceil(totalItems / limit) - 1)
  const link = (linked: number, relation: string) => {
    const query = queryString({ from, to, limit, page: linked, version })
    return `<?${query}>; rel="${relation}"`
  }
  const links = [link(0, 'first')]
  if (page > 0) links.push(link(Math.min(page - 1, last), 'prev'))
  if (page < last) links.push(link(page + 1, 'next'))
  links.push(link(last, 'last'))
  return links.join(', ')
}

/** Unlike URLSearchParams, it costs nothing: a valid value has no character to encode. */
function queryString(parameters: Record<string, string | number | undefined>): string {
  let query = ''
  for (const name in parameters) {
    const value = parameters[name]
    if (value !== undefined) query += query === '' ? `${name}=${value}` : `&${name}=${value}`
  }
  return query
}
