import { readFileSync } from 'node:fs'
import { InvestmentData, type InvestmentNames } from '../../typescript/src/index.ts'

/** Settings of the program, checked. */
export interface Settings {
  baseUrl: string
  token: string
  /** Connection tokens by the names that the assistant sees. */
  connections: Record<string, string>
  /** Names of investments by their identifiers. */
  names: InvestmentNames
}

/** A setting is missing or wrong. The message is a sentence for the user, without a token. */
export class SettingsError extends Error {}

type Environment = Record<string, string | undefined>

/** Letters, digits, `.`, `_` and `-`: the names stand in the schemas of the tools. */
const NAME = /^[\p{L}\p{N}._-]{1,40}$/u
const IDENTIFIER = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Reads the settings from the environment and from the files that it names.
 * @throws SettingsError
 */
export function readSettings(env: Environment): Settings {
  const baseUrl = settingOf(env, 'INVESTMENT_DATA_URL')
  if (baseUrl === undefined)
    throw new SettingsError('Set INVESTMENT_DATA_URL to the address of the service.')
  const token = valueOrFile(env, 'INVESTMENT_DATA_TOKEN')
  const list = valueOrFile(env, 'INVESTMENT_DATA_CONNECTIONS')
  const isFile = settingOf(env, 'INVESTMENT_DATA_CONNECTIONS') === undefined
  const connections = connectionsOf(list.split(isFile ? /\r?\n/ : ','))
  checkTokens(baseUrl, token, connections)
  return { baseUrl, token, connections, names: namesOf(env) }
}

/** Reads the file of names, if there is one. A name may have a comma, so there is no variable with a list. */
function namesOf(env: Environment): InvestmentNames {
  const path = settingOf(env, 'INVESTMENT_DATA_NAMES_FILE')
  if (path === undefined) return {}
  const names: Record<string, string> = {}
  for (const line of contentOf('INVESTMENT_DATA_NAMES', path).split(/\r?\n/)) {
    if (line.trim() === '') continue
    const [key = '', ...rest] = line.split('=')
    const identifier = key.trim().toLowerCase()
    const name = rest.join('=').trim()
    if (!IDENTIFIER.test(identifier) || name === '')
      throw new SettingsError(
        'A line in the file of INVESTMENT_DATA_NAMES_FILE is not identifier=name.',
      )
    names[identifier] = name
  }
  return names
}

/** An empty variable is the same as none: the forms of many hosts leave it empty. */
function settingOf(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim()
  return value === '' ? undefined : value
}

function valueOrFile(env: Environment, name: string): string {
  const value = settingOf(env, name)
  const path = settingOf(env, `${name}_FILE`)
  if (value !== undefined && path !== undefined)
    throw new SettingsError(`Set ${name} or ${name}_FILE, not both.`)
  if (value !== undefined) return value
  if (path === undefined) throw new SettingsError(`Set ${name} or ${name}_FILE.`)
  return contentOf(name, path)
}

function contentOf(name: string, path: string): string {
  let content: string
  try {
    content = readFileSync(path, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new SettingsError(`The file of ${name}_FILE cannot be read (${code}).`)
  }
  if (content === '') throw new SettingsError(`The file of ${name}_FILE is empty.`)
  return content
}

/** Splits each entry at its first `=`, because a token may have others. */
function connectionsOf(entries: string[]): Record<string, string> {
  const connections: Record<string, string> = {}
  for (const entry of entries) {
    if (entry.trim() === '') continue
    const [name = '', ...rest] = entry.split('=')
    const token = rest.join('=').trim()
    if (token === '')
      throw new SettingsError(
        'An entry of INVESTMENT_DATA_CONNECTIONS has no token: write name=token.',
      )
    const trimmed = name.trim()
    if (!NAME.test(trimmed))
      throw new SettingsError(
        'A name in INVESTMENT_DATA_CONNECTIONS is not 1 to 40 letters, digits, ".", "_" or "-".',
      )
    if (Object.hasOwn(connections, trimmed))
      throw new SettingsError('A name in INVESTMENT_DATA_CONNECTIONS stands twice.')
    connections[trimmed] = token
  }
  if (Object.keys(connections).length === 0)
    throw new SettingsError('INVESTMENT_DATA_CONNECTIONS has no connection: write name=token.')
  return connections
}

/** Lets the client check all values. Its messages have no value. */
function checkTokens(baseUrl: string, token: string, connections: Record<string, string>): void {
  try {
    const api = new InvestmentData({ baseUrl, token })
    for (const each of Object.values(connections)) api.connection(each)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new SettingsError(`A setting is wrong: ${error.message}.`)
  }
}
