import type { ListFacts } from '../queries/transaction-list.ts'

/**
 * The Link header of a page (RFC 8288, contract 23): first, prev, next and last, on the address that was
 * asked for. `next` is absent on the last page and past it.
 */
export function pageLinks(url: string, { limit, page }: ListFacts, totalItems: number): string {
  const last = Math.max(0, Math.ceil(totalItems / limit) - 1)
  const pages = [
    ['first', 0],
    ['prev', page > 0 ? Math.min(page - 1, last) : undefined],
    ['next', page < last ? page + 1 : undefined],
    ['last', last],
  ] as const
  return pages
    .flatMap(([rel, number]) =>
      number === undefined ? [] : [`<${addressOf(url, limit, number)}>; rel="${rel}"`],
    )
    .join(', ')
}

function addressOf(url: string, limit: number, page: number): string {
  const [path, query = ''] = url.split('?', 2)
  const parameters = new URLSearchParams(query)
  parameters.set('limit', String(limit))
  parameters.set('page', String(page))
  return `${path}?${parameters}`
}
