import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { OperatorError } from './operator-error.ts'

/**
 * Sets the variables of .env that are not set.
 * @returns warnings about lines that set nothing, without their text: it may be a secret
 * @throws OperatorError if there is such a file, but it cannot be read
 */
export function readEnvFile(environment: NodeJS.ProcessEnv): string[] {
  let bytes: Buffer
  try {
    bytes = readFileSync('.env')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw unreadable('.env', error)
  }
  // PowerShell writes UTF-16.
  if (!isUtf8(bytes) || bytes.includes(0)) throw new OperatorError('.env is not UTF-8.')
  const text = bytes.toString().replace(/^\ufeff/, '')
  for (const [name, value] of Object.entries(parseEnv(text))) environment[name] ??= value
  return envWarnings(text)
}

const ASSIGNMENT = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)$/

function envWarnings(text: string): string[] {
  const warnings: string[] = []
  const names = new Set<string>()
  /** The quote that ends a value of several lines. */
  let quote = ''
  const lines = text.split(/\r?\n/)
  for (const [index, line] of lines.entries()) {
    if (quote !== '') {
      if (line.includes(quote)) quote = ''
      continue
    }
    const content = line.trim()
    if (content === '' || content.startsWith('#')) continue
    const [, name, value = ''] = ASSIGNMENT.exec(line) ?? []
    if (name === undefined) {
      warnings.push(`Line ${index + 1} of .env has no effect: it is not NAME=value.`)
      continue
    }
    if (names.has(name)) warnings.push(`.env sets ${name} twice: the last value is used.`)
    names.add(name)
    const [first = ''] = value
    const opens = /["'`]/.test(first) && !value.includes(first, 1)
    if (opens && lines.slice(index + 1).some((later) => later.includes(first))) quote = first
  }
  return warnings
}

/** Variables that may contain a secret. NAME_FILE names a file that has the value of NAME. */
const SECRETS = [
  'DATABASE_URL',
  'DATABASE_REPLICA_URL',
  'REDIS_URL',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
  'SERVICE_DATABASE_PASSWORD',
]

/** Sets the secrets that are in files. A file overrides a variable. @throws OperatorError without text or path of a file */
export function readSecretFiles(environment: NodeJS.ProcessEnv): void {
  for (const name of SECRETS) {
    const path = environment[`${name}_FILE`]
    if (!path) continue
    const subject = `The file of ${name}_FILE`
    try {
      environment[name] = readFileSync(path, 'utf8').trim()
    } catch (error) {
      throw unreadable(subject, error)
    }
    if (environment[name] === '') throw new OperatorError(`${subject} is empty.`)
  }
}

function unreadable(subject: string, error: unknown): OperatorError {
  return new OperatorError(`${subject} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
}

/** Handles a failed import of the embedded database. @throws OperatorError if it is not installed */
export function withoutEmbedded(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  throw new OperatorError('DATABASE_URL must be set: this installation has no embedded PostgreSQL.')
}
