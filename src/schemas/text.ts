import { Type } from '@sinclair/typebox'

/** Names, codes, times of day: text passed through, as long as the tables let it be. */
export const ShortText = Type.String({ maxLength: 255 })

/** Running text passed through. Bounded, so that the size of a page is. */
export const LongText = Type.String({ maxLength: 10_000 })
