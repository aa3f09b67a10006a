import type { ListProbe } from '../postgres/readiness.ts'
import { bind } from '../postgres/statements.ts'
import { connectionKey } from '../postgres/tokens.ts'
import { lists } from '../schemas/lists.ts'
import type { AuthMethod } from './connection.ts'
import { pagedList } from './pages.ts'
import { p, type Values } from './parameters.ts'
import { completedOrders } from './transfer-orders.ts'

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

/** Returns what a health check runs of each list: all statements of its requests. @param methods in use */
export function listProbes(methods: readonly AuthMethod[]): ListProbe[] {
  return lists.map((list) => {
    const { queries } = list.paged ? pagedList(list) : completedOrders(list)
    const reads = Object.values(queries).flatMap(({ statements }) =>
      methods.map((method) => {
        const statement = statements[method]
        return { statement, values: bind(statement, { ...NO_PAGE, ...NOBODY }) }
      }),
    )
    return { list: list.name, reads }
  })
}
