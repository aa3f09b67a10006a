import { fromJsonSchema, type JsonSchemaType, type McpServer } from '@modelcontextprotocol/server'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
import type { Static, TObject } from '@sinclair/typebox'
import {
  type InvestmentData,
  InvestmentDataError,
  ProblemError,
  type SqliteStore,
} from '../../typescript/src/index.ts'
import { currentCopy } from './copies.ts'
import { Refusal } from './refusal.ts'

/** Clients and connections of a server. */
export interface ServerOptions {
  api: InvestmentData
  /** Connection tokens by the names that the assistant sees. */
  connections: Record<string, string>
}

/** What a tool answers, after the time of the last refresh: a line of JSON, and a table. */
export interface Answer {
  facts: Record<string, unknown>
  table?: string
}

interface Tool<Input extends TObject> {
  name: string
  description: string
  /** Its schema has `connection`, and rejects other properties. */
  input: Input
  work: (input: Static<Input>, copy: SqliteStore) => Answer
}

const ANNOTATIONS = { readOnlyHint: true, idempotentHint: true, openWorldHint: true }

/** Adds a tool to a server. It reads the current copy of the connection that the call names. */
export function addTool<Input extends TObject>(
  server: McpServer,
  { api, connections }: ServerOptions,
  { name, description, input, work }: Tool<Input>,
): void {
  const config = { description, inputSchema: strictSchema(input), annotations: ANNOTATIONS }
  server.registerTool(name, config, async (values) => {
    try {
      const { connection } = values as { connection: string }
      const token = Object.hasOwn(connections, connection) ? connections[connection] : undefined
      if (token === undefined) throw new Refusal('This server has no connection with this name.')
      const copy = await currentCopy(api, token)
      const { facts, table } = work(values, copy)
      const refreshedAt = copy.refreshedAt()?.toISOString() ?? null
      const head = JSON.stringify({ refreshedAt, ...facts })
      return { content: [{ type: 'text', text: table ? `${head}\n${table}` : head }] }
    } catch (error) {
      return { isError: true, content: [{ type: 'text', text: messageOf(error) }] }
    }
  })
}

/**
 * Returns the schema for the SDK. The default validator does not name the property that it rejects, so an assistant
 * could not correct a misspelt filter.
 */
function strictSchema<Input extends TObject>(input: Input) {
  // TypeBox keeps symbols in its schemas, and an in-memory transport would send them.
  const schema = JSON.parse(JSON.stringify(input)) as JsonSchemaType
  const known = Object.keys(input.properties)
  const check = new AjvJsonSchemaValidator().getValidator<Static<Input>>(schema)
  const validate: typeof check = (values) => {
    const unknown = Object.keys(values ?? {}).filter((name) => !known.includes(name))
    if (unknown.length === 0) return check(values)
    const names = JSON.stringify(unknown.map((name) => name.slice(0, 40)).slice(0, 5))
    const errorMessage = `no argument has the name ${names}; the names are ${known.join(', ')}`
    return { valid: false, data: undefined, errorMessage }
  }
  return fromJsonSchema<Static<Input>>(schema, { getValidator: () => validate as never })
}

/** What the user can do about an error of the service. */
const ADVICE: Record<string, string> = {
  connection_not_found:
    'The connection was removed, or its token is wrong in the settings of this server.',
  expired_token: 'The app token in the settings of this server must be replaced.',
  invalid_token: 'The app token in the settings of this server must be replaced.',
}

/** Codes of the service that an answer names. Another code could be any text. */
const KNOWN_CODES: readonly string[] = [
  'missing_credentials',
  'malformed_credentials',
  'invalid_token',
  'expired_token',
  'invalid_request',
  'malformed_request',
  'connection_not_found',
  'route_not_found',
  'cursor_expired',
  'response_too_large',
  'data_changed',
  'method_not_allowed',
  'too_many_requests',
  'internal_error',
  'service_unavailable',
]

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
    const code = KNOWN_CODES.includes(error.code) ? error.code : 'unknown code'
    const advice = ADVICE[code] ?? 'Try again later.'
    return `The service answered with an error: ${code} (status ${Number(error.status)}). ${advice}`
  }
  if (error instanceof InvestmentDataError)
    return `${error.code}: ${error.message}. Try again later.`
  return 'The response of the service cannot be read, or this server has a fault.'
}
