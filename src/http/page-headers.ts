import type { FoundList, ListRequest } from '../queries/read.ts'
import type { Format } from '../schemas/list.ts'
import { filtersOf } from '../schemas/request.ts'

/** What the headers of a 200 depend on. */
interface Listed {
  /** Name of the list. */
  name: string
  format: Format
  request: ListRequest
  /** Data version that the request asks for. */
  version: string | undefined
  found: FoundList
}

/** Returns headers of a 200, by their names in lower case. */
export type HeaderWriter = (listed: Listed) => Record<string, string | number>

/** Headers of pages, changes and exports, which a list without pages does not have. schemas/response.ts describes them. */
export const pageHeaders: HeaderWriter = ({ name, format, request, version, found }) => {
  const { lookup, changes } = found
  if (request.purpose === 'export') return exportHeaders(name, format, request, lookup.totalItems)
  // Links (RFC 8288) are relative: the path has the connection token, and proxies log headers.
  if (changes) return { link: changesLink(request.limit, changes) }
  return { link: pageLink(request, version, lookup.totalItems) }
}

function exportHeaders(name: string, format: Format, request: ListRequest, totalItems: number) {
  const parts = [name]
  for (const [filter, value] of Object.entries(filtersOf(request)))
    if (value !== undefined) parts.push(`${filter}-${value}`)
  const suffix = format === 'csv' ? 'csv' : 'ndjson'
  return {
    'x-total-count': totalItems,
    'content-disposition': `attachment; filename="${parts.join('-')}.${suffix}"`,
  }
}

function changesLink(
  limit: number,
  { nextCursor, hasMore }: NonNullable<FoundList['changes']>,
): string {
  const first = `<?since=start&limit=${limit}>; rel="first"`
  return hasMore ? `${first}, <?since=${nextCursor}&limit=${limit}>; rel="next"` : first
}

function pageLink(request: ListRequest, version: string | undefined, totalItems: number): string {
  const { limit, page } = request
  const last = Math.max(0, Math.ceil(totalItems / limit) - 1)
  const link = (linked: number, relation: string) => {
    const query = queryString({ ...filtersOf(request), limit, page: linked, version })
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
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) query += query === '' ? `${name}=${value}` : `&${name}=${value}`
  }
  return query
}
