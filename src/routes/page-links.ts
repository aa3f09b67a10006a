import type { ListFacts } from '../queries/transaction-list.ts'

/**
 * The Link header of a page (RFC 8288, contract 23): first, prev, next and last, on the address that was
 * asked for. `next` is absent on the last page and past it.
 */
export function pageLinks(url: string, facts: ListFacts, totalItems: number): string {
  const { from, to, limit, page } = facts
  const path = url.split('?', 1)[0]
  const range = `${from ? `from=${from}&` : ''}${to ? `to=${to}&` : ''}`
  const link = (rel: string, number: number) =>
    `<${path}?${range}limit=${limit}&page=${number}>; rel="${rel}"`
  const last = Math.max(0, Math.ceil(totalItems / limit) - 1)
  const links = [link('first', 0)]
  if (page > 0) links.push(link('prev', Math.min(page - 1, last)))
  if (page < last) links.push(link('next', page + 1))
  links.push(link('last', last))
  return links.join(', ')
}
