import type { ListProbe } from '../postgres/readiness.ts'
import { bind } from '../postgres/statements.ts'
import { connectionKey } from '../postgres/tokens.ts'
import type { List } from '../schemas/list.ts'
import type { AuthMethod } from './connection.ts'
import { p, type Values } from './parameters.ts'
import type { ListQueries } from './read.ts'

const NO_CONNECTION = Buffer.alloc(32)

/** Keys of nobody. No digest of a token is zero, and no app has an empty client id. */
const NOBODY: Values = {
  tokenHash: `\\x${'00'.repeat(32)}`,
  clientId: '',
  connectionHash: NO_CONNECTION,
  connectionKey: connectionKey(NO_CONNECTION),
}

/** Nobody has rows, so the parameters of a page may be null. */
const NO_PAGE = Object.fromEntries(Object.keys(p).map((name) => [name, null]))

interface ProbedList {
  list: List
  queries: ListQueries
}

/** Returns what a health check runs of each list: all statements of its requests. @param methods in use */
export function listProbes(
  lists: readonly ProbedList[],
  methods: readonly AuthMethod[],
): ListProbe[] {
  return lists.map(({ list, queries }) => {
    const reads = Object.values(queries.statements).flatMap((query) =>
      methods.map((method) => {
        const statement = query[method]
        return { statement, values: bind(statement, { ...NO_PAGE, ...NOBODY }) }
      }),
    )
    return { list: list.name, reads }
  })
}
