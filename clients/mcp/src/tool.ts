import { fromJsonSchema, type McpServer } from '@modelcontextprotocol/server'
import { PROBLEM_CODES } from '../../typescript/src/errors.ts'
import {
  type InvestmentData,
  InvestmentDataError,
  type InvestmentNames,
  ProblemError,
  type SqliteStore,
} from '../../typescript/src/index.ts'
import { type Arguments, schemaOf, type Values, valuesOf } from './arguments.ts'
import { currentCopy } from './copies.ts'
import { Refusal } from './refusal.ts'

/** Clients and connections of a server. */
export interface ServerOptions {
  api: InvestmentData
  /** Connection tokens by the names that the assistant sees. */
  connections: Record<string, string>
  /** Names of investments that your app knows, by identifier. They come before those of transfer orders. */
  names?: InvestmentNames | undefined
}

/** What a tool answers, after the time of the last refresh: a line of JSON, and a table. */
export interface Answer {
  facts: Record<string, unknown>
  table?: string
}

export interface Tool<Input extends Arguments> {
  name: string
  description: string
  /** Its arguments, with `connection`. */
  input: Input
  work: (values: Values<Input>, copy: SqliteStore, names: InvestmentNames) => Answer
}

/** Returns a tool, whose function takes the checked values of its arguments. */
export function defineTool<Input extends Arguments>(tool: Tool<Input>): Tool<Input> {
  return tool
}

const ANNOTATIONS = { readOnlyHint: true, idempotentHint: true, openWorldHint: true }

/** Adds a tool to a server. It reads the current copy of the connection that the call names. */
export function addTool<Input extends Arguments>(
  server: McpServer,
  { api, connections, names = {} }: ServerOptions,
  { name, description, input, work }: Tool<Input>,
): void {
  // The schema is for the model. The arguments check their values themselves.
  const schema = fromJsonSchema(schemaOf(input), { getValidator: () => accept })
  const config = { description, inputSchema: schema, annotations: ANNOTATIONS }
  server.registerTool(name, config, async (given) => {
    try {
      const values = valuesOf(input, given)
      const connection = String(values.connection)
      const copy = await currentCopy(api, String(connections[connection]))
      const { facts, table } = work(values, copy, names)
      const refreshedAt = copy.refreshedAt()?.toISOString() ?? null
      const head = JSON.stringify({ connection, refreshedAt, ...facts })
      return { content: [{ type: 'text', text: table ? `${head}\n${table}` : head }] }
    } catch (error) {
      return { isError: true, content: [{ type: 'text', text: messageOf(error) }] }
    }
  })
}

const accept = (data: unknown) => ({
  valid: true as const,
  data: data as never,
  errorMessage: undefined,
})

/** What the user can do about an error of the service. */
const ADVICE: Record<string, string> = {
  connection_not_found:
    'The connection was removed, or its token is wrong in the settings of this server.',
  expired_token: 'The app token in the settings of this server must be replaced.',
  invalid_token: 'The app token in the settings of this server must be replaced.',
}

/** Returns the error of a tool. An error of the service must never look like an empty list. */
function messageOf(error: unknown): string {
  if (error instanceof Refusal) return error.message
  return `No data was read, so nothing is known about the connection. ${causeOf(error)}`
}

/**
 * Describes an error in words of this server alone. A service or a proxy may repeat tokens of the request in a code
 * or a detail, and the message of another error may have a part of the response.
 */
function causeOf(error: unknown): string {
  if (error instanceof ProblemError) {
    // Another code could be any text.
    const code = PROBLEM_CODES.find((known) => known === error.code) ?? 'unknown code'
    const advice = ADVICE[code] ?? 'Try again later.'
    return `The service answered with an error: ${code} (status ${Number(error.status)}). ${advice}`
  }
  if (error instanceof InvestmentDataError)
    return `${error.code}: ${error.message}. Try again later.`
  return 'The response of the service cannot be read, or this server has a fault.'
}
