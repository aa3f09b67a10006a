import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { EFFECTIVE_DATE, Reference, Uuid } from './fields.ts'

/** A list of the API: its rows in the database, and the fields of a row. src/routes/ has its endpoint. */
export interface List {
  /** Name of its exports, and of its rows in the commands of an operator. */
  name: string
  table: string
  /** Field that identifies a row within its connection. */
  id: string
  item: TObject
  /** Body of a response. */
  response: TSchema
  /** The same with decimals as JSON strings. */
  exact: {
    item: TObject
    response: TSchema
  }
  /** Dates of a row, of which one must have a value. The first one with a value is the effective date. */
  dates: readonly string[]
  /** Fields that an operator writes, and that no response has. A time may have the default `NOW`. */
  hidden: Readonly<Record<string, TSchema>>
  /** Part of every ETag. A release that changes the bytes of a response increments it. */
  revision: number
  /** True if PostgreSQL numbers the changes of its rows, and counts the rows of each month. Pages and changes need both. */
  hasChanges: boolean
}

/** Default of a time that an operator leaves out: the time of the import, unless the row has one already. */
export const NOW = 'now'

/** Formats of a response, and their media types. `IEEE754Compatible` is OData's name for decimals as strings. */
export const MEDIA_TYPES = {
  json: 'application/json',
  exactJson: 'application/json;IEEE754Compatible=true',
  ndjson: 'application/x-ndjson',
  exactNdjson: 'application/x-ndjson;IEEE754Compatible=true',
  csv: 'text/csv',
} as const
export type Format = keyof typeof MEDIA_TYPES

/** Formats of exports: all rows of the list, without parameters of pages. */
export const EXPORTS: ReadonlySet<Format> = new Set(['ndjson', 'exactNdjson', 'csv'])

/** Rows of a page if the request has no `limit`. */
export const DEFAULT_LIMIT = 1000

/** Largest value of the setting `MAX_LIMIT`. */
export const LARGEST_LIMIT = 100_000

/** Page if the request has no `page`. */
export const DEFAULT_PAGE = 0

/** Largest `page`. */
export const MAXIMUM_PAGE = 2_147_483_647

/** All items of a list, in one array. */
export function ListArray(item: TObject, description: string) {
  return Type.Array(Reference(item), { $id: `${item.$id}List`, description })
}

/** One page of a list. */
export function ListEnvelope(item: TObject, description: string) {
  return Type.Object(
    {
      items: Type.Array(Reference(item), {
        maxItems: LARGEST_LIMIT,
        description:
          `Rows of this page, newest first. They are sorted by ${EFFECTIVE_DATE}; then by ` +
          '`operationDateHour` (null last); then by identifier; all descending. A page past the ' +
          'last one is empty. With `since`: changed rows, in the order of their last change.',
      }),
      limit: Type.Integer({
        format: 'int32',
        minimum: 1,
        maximum: LARGEST_LIMIT,
        description:
          'Maximum number of rows in a page, as applied. With `since`, removed rows count, too.',
      }),
      page: Type.Integer({
        format: 'int32',
        minimum: 0,
        maximum: MAXIMUM_PAGE,
        description: 'Number of this page, as applied; the first page is 0.',
      }),
      totalItems: Type.Integer({
        format: 'int64',
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'Exact number of rows between `from` and `to` on all pages, counted in the same ' +
          'snapshot as the items. With `since`: of all rows.',
      }),
      removed: Type.Optional(
        Type.Array(Uuid, {
          maxItems: LARGEST_LIMIT,
          description: 'Only with `since`: identifiers of rows that no longer exist.',
        }),
      ),
      nextCursor: Type.Optional(
        Type.String({
          maxLength: 128,
          description:
            'Only with `since`: value of `since` for the next request. Opaque; valid for at ' +
            'least 400 days.',
        }),
      ),
      hasMore: Type.Optional(
        Type.Boolean({
          description:
            'Only with `since`: true if more changes exist. When it is false, the copy of the ' +
            'client has exactly `totalItems` rows.',
        }),
      ),
    },
    { $id: `${item.$id}List`, description },
  )
}
