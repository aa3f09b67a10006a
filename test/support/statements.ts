import { refreshesStatement, serverStatement } from '../../src/postgres/readiness.ts'
import { bind, type CompiledStatement, type Parameter } from '../../src/postgres/statements.ts'
import { connectionKey, tokenHash } from '../../src/postgres/tokens.ts'
import type { Values } from '../../src/queries/parameters.ts'
import { lookupStatements } from '../../src/queries/read.ts'
import type { ListRoute } from '../../src/routes/list.ts'
import { lists } from '../../src/routes/lists.ts'

/** Returns every statement that a request of these lists runs. */
export function statementsOf(lists: readonly Pick<ListRoute, 'queries'>[]): CompiledStatement[] {
  const queries = lists.flatMap(({ queries }) => Object.values(queries.statements))
  const ofLists = queries.flatMap((query) => Object.values(query))
  return [...ofLists, ...Object.values(lookupStatements)]
}

/** Every statement that a request runs, by its title. */
export const statements: ReadonlyMap<string, CompiledStatement> = new Map(
  statementsOf(lists).map((statement) => [statement.title, statement]),
)

/** Statements about the server, which no request runs. */
export const serverStatements: readonly CompiledStatement[] = [refreshesStatement, serverStatement]

/** @throws Error if no request runs a statement with this title */
export function statementOf(title: string): CompiledStatement {
  const statement = statements.get(title)
  if (statement === undefined) throw new Error(`there is no statement ${title}`)
  return statement
}

/** Returns a value for each parameter of every statement: the first page of all rows, and all changes. */
export function valuesFor(
  caller: { token: string; clientId?: string },
  connection: string,
): Values {
  const connectionHash = tokenHash(connection)
  return {
    tokenHash: tokenHash(caller.token),
    clientId: caller.clientId ?? 'nobody',
    connectionHash,
    connectionKey: connectionKey(connectionHash),
    table: 'portfolio_transaction',
    from: '-infinity',
    to: 'infinity',
    limit: 10,
    offset: 0,
    since: '1',
    sinceVersion: '1',
  }
}

/** Returns the values of a statement as literals, for EXECUTE. */
export function literalsOf(statement: CompiledStatement, values: Values): string {
  return bind(statement, values).map(literalOf).join(', ')
}

function literalOf(value: Parameter): string {
  if (value === null) return 'null'
  return Buffer.isBuffer(value) ? `'\\x${value.toString('hex')}'` : `'${value}'`
}

/** Returns the text of a statement with `:from` instead of `$4::date`. */
export function namedText({ text, parameters }: CompiledStatement): string {
  return text.replaceAll(/\$(\d+)::\w+/g, (_, number) => `:${parameters[number - 1]?.name}`)
}

/** Returns the text that PostgreSQL reads, for a text with names of the parameters. */
export function numberedText(named: string, { parameters }: CompiledStatement): string {
  return named.replaceAll(/(?<!:):([a-z]\w+)/gi, (_, name) => {
    const index = parameters.findIndex((parameter) => parameter.name === name)
    return `$${index + 1}::${parameters[index]?.type}`
  })
}
