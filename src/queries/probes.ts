import type { ListProbe } from '../postgres/readiness.ts'
import type { Parameter, Statement } from '../postgres/statements.ts'
import { connectionKey } from '../postgres/tokens.ts'
import { lists } from '../schemas/lists.ts'
import type { AuthMethod } from './connection.ts'
import { pagedList } from './pages.ts'
import { completedOrders } from './transfer-orders.ts'

/** Credentials of nobody. No digest of a token is zero, and no app has an empty client id. */
const NOBODY: Record<AuthMethod, string> = { tokenHash: `\\x${'00'.repeat(32)}`, clientId: '' }
const NO_CONNECTION = Buffer.alloc(32)

/** Returns what a health check runs of each list: all statements of its requests. @param methods in use */
export function listProbes(methods: readonly AuthMethod[]): ListProbe[] {
  return lists.map((list) => {
    const { queries } = list.paged ? pagedList(list) : completedOrders(list)
    const reads = Object.values(queries).flatMap(({ statements }) =>
      methods.map((method) => probeOf(statements[method], method)),
    )
    return { list: list.name, reads }
  })
}

function probeOf(statement: Statement, method: AuthMethod) {
  const keys = [NOBODY[method], NO_CONNECTION, connectionKey(NO_CONNECTION)]
  const positions = Array.from(statement.text.matchAll(/\$(\d+)/g), ([, position]) =>
    Number(position),
  )
  // Nobody has rows, so the parameters of a page may be null.
  const page = Array<Parameter>(Math.max(...positions) - keys.length).fill(null)
  return { statement, values: [...keys, ...page] }
}
