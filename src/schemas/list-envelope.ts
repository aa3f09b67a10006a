import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Component, type Named, Reference } from './component.ts'
import { DEFAULT_LIMIT, MAXIMUM_PAGE } from './list-query.ts'
import { EFFECTIVE_DATE } from './transaction-dates.ts'

interface ListAnnotations {
  name: string
  title: string
  description: string
}

/**
 * The envelope of a paged list (section 2.1) around items of one kind. `limit` and `page` are the
 * values applied; `totalItems` counts what the filter lets through, whatever the page, in the same
 * snapshot that the items come from (contract item 9).
 */
export function ListEnvelope<Item extends TSchema>(
  item: Named<Item>,
  { name, title, description }: ListAnnotations,
) {
  return Component(
    name,
    Type.Object(
      {
        items: Type.Array(Reference(item), {
          title: 'Items',
          description:
            `The rows of this page, newest first by ${EFFECTIVE_DATE}, then by ` +
            '`operationDateHour` (null last), then by identifier, all descending. Empty past the ' +
            'last page.',
        }),
        limit: Type.Integer({
          minimum: 1,
          title: 'Limit',
          description: 'Rows that a page holds at most: the value that was applied.',
          examples: [DEFAULT_LIMIT],
        }),
        page: Type.Integer({
          minimum: 0,
          maximum: MAXIMUM_PAGE,
          title: 'Page',
          description: 'Number of this page, the first is 0: the value that was applied.',
          examples: [0],
        }),
        totalItems: Type.Integer({
          minimum: 0,
          title: 'Total of items',
          description:
            'Exact number of rows between `from` and `to`, on all pages, counted in the same ' +
            'snapshot that the items come from.',
          examples: [5213],
        }),
      },
      { additionalProperties: false, title, description },
    ),
  )
}

/** A page of any kind of row. */
export type ListEnvelope<Item extends TSchema> = Static<ReturnType<typeof ListEnvelope<Item>>>
