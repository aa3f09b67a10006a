import { type Body, bodyOf, chunksOf, type Frame, type Writing } from '../json/response-body.ts'
import type { RowWriter } from '../json/row-writer.ts'
import type { FoundList, ListRequest, Rows } from '../queries/read.ts'
import { type Format, MEDIA_TYPES } from '../schemas/list.ts'

export const PAGE_FORMATS = Object.keys(MEDIA_TYPES) as Format[]

/** Writes the body of a 200. */
export type BodyWriter = (
  found: FoundList,
  request: ListRequest,
  writer: RowWriter,
  writing: Writing,
) => Body | Promise<Body>

/** Writes the body of an export, of changes or of a page. */
export const pageBody: BodyWriter = (found, { limit, page }, writer, writing) => {
  const { lookup, rows, changes, laterRows } = found
  if (laterRows) {
    const frame = { opening: writer.header, closing: '' }
    return chunksOf(allOf(rows, laterRows), writer, frame, writing)
  }
  let closing = `],"limit":${limit},"page":${page},"totalItems":${lookup.totalItems}`
  if (changes) {
    const { removed, nextCursor, hasMore } = changes
    closing += `,"removed":[${removed}],"nextCursor":"${nextCursor}","hasMore":${hasMore}`
  }
  return bodyOf(rows, writer, { opening: '{"items":[', closing: `${closing}}` }, writing)
}

export const ARRAY_FORMATS: Format[] = ['json', 'exactJson']

const ARRAY: Frame = { opening: '[', closing: ']' }

/** Writes all rows of a list without pages. */
export const arrayBody: BodyWriter = ({ rows }, _request, writer, writing) =>
  bodyOf(rows, writer, ARRAY, writing)

async function* allOf(first: Rows, others: AsyncIterable<Rows>): AsyncGenerator<Rows> {
  yield first
  yield* others
}
