import type { ListFacts } from '../queries/transaction-list.ts'

type Paging = Pick<ListFacts, 'from' | 'to' | 'limit' | 'page'>

/**
 * The Link header of a page (RFC 8288, contract 23): first, prev, next and last. `next` is absent on
 * the last page and past it. The targets are relative to the address that was asked for, so that the
 * connection's token in it is not repeated in a header, where it might be logged (contract 21).
 */
export function pageLinks({ from, to, limit, page }: Paging, totalItems: number): string {
  const last = Math.max(0, Math.ceil(totalItems / limit) - 1)
  const filter = `${from ? `from=${from}&` : ''}${to ? `to=${to}&` : ''}`
  const pages = [
    ['first', 0],
    ['prev', page > 0 ? Math.min(page - 1, last) : undefined],
    ['next', page < last ? page + 1 : undefined],
    ['last', last],
  ] as const
  return pages
    .filter(([, number]) => number !== undefined)
    .map(([rel, number]) => `<?${filter}limit=${limit}&page=${number}>; rel="${rel}"`)
    .join(', ')
}
