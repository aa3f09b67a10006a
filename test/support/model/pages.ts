/** The fields of a row that decide its position, and two fields that must not change. */
export interface ModelRow {
  id: string
  operationDateDay: string | null
  valueDateDay: string | null
  operationDateHour: string | null
  description: string | null
  /** Digits. */
  amount: string
}

export interface ModelQuery {
  from?: string | undefined
  to?: string | undefined
  limit?: number | undefined
  page?: number | undefined
}

/**
 * The contract over an array: the rows between from and to by their effective date, newest first, cut
 * into pages.
 */
export function modelPage(rows: ModelRow[], { from, to, limit = 1000, page = 0 }: ModelQuery) {
  const chosen = rows
    .filter((row) => from === undefined || effectiveDay(row) >= from)
    .filter((row) => to === undefined || effectiveDay(row) <= to)
    .toSorted(newestFirst)
  const items = chosen.slice(page * limit, (page + 1) * limit)
  return { items, limit, page, totalItems: chosen.length }
}

function effectiveDay(row: ModelRow): string {
  return row.operationDateDay ?? row.valueDateDay ?? ''
}

function newestFirst(a: ModelRow, b: ModelRow): number {
  return (
    compare(effectiveDay(b), effectiveDay(a)) ||
    Number(a.operationDateHour === null) - Number(b.operationDateHour === null) ||
    compare(b.operationDateHour ?? '', a.operationDateHour ?? '') ||
    compare(b.id, a.id)
  )
}

/** Compares bytes: JavaScript compares UTF-16 units, which differ beyond U+FFFF. */
function compare(a: string, b: string): number {
  return Buffer.from(a).compare(Buffer.from(b))
}
