import { type ListProperty, rowTypes } from '../../src/operator/loading/row-types.ts'

/** No rows of any list, as the commands of the operator count them. */
export const noRows = Object.fromEntries(
  Object.values(rowTypes).map(({ list }) => [list, 0]),
) as Record<ListProperty, number>
