import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { OperatorError } from './operator-error.ts'

export class ConfigurationError extends OperatorError {
  override name = 'ConfigurationError'
}

const ENV_FILE = '.env'
/** A line that node:util parses, after a value in quotes has been removed. */
const ENV_LINE = /^\s*(#.*|(export\s+)?[A-Za-z_][\w.-]*\s*=.*)?$/

/** Sets the variables of .env that are not set. @throws ConfigurationError without its text, which may be secret */
export function readEnvFile(environment: NodeJS.ProcessEnv): void {
  if (!existsSync(ENV_FILE)) return
  const text = readText(ENV_FILE, ENV_FILE)
  // A value in quotes may have several lines.
  const quoted = /^([^#\n=]*=\s*)(["'`])([\s\S]*?)\2/gm
  const unquoted = text.replace(quoted, (_, name, _quote, value) => name + value.replace(/./g, ''))
  const wrong = unquoted.split(/\r?\n/).findIndex((line) => !ENV_LINE.test(line))
  if (wrong !== -1)
    throw new ConfigurationError(`Line ${wrong + 1} of ${ENV_FILE} must be NAME=value.`)
  for (const [name, value] of Object.entries(parseEnv(text))) environment[name] ??= value
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

/**
 * Sets the secrets that are in files.
 * @returns a function that reads the files again
 * @throws ConfigurationError, without text or path of a file
 */
export function readSecretFiles(environment: NodeJS.ProcessEnv): () => void {
  const names = SECRETS.filter((name) => environment[`${name}_FILE`])
  const doubled = names.find((name) => environment[name])
  if (doubled)
    throw new ConfigurationError(`${doubled} and ${doubled}_FILE are both set: unset one of them.`)
  const read = () => {
    const secrets = names.map((name) => {
      const subject = `The file of ${name}_FILE`
      const text = readText(String(environment[`${name}_FILE`]), subject).trim()
      if (text === '') throw new ConfigurationError(`${subject} is empty.`)
      return [name, text]
    })
    Object.assign(environment, Object.fromEntries(secrets))
  }
  read()
  return read
}

function readText(path: string, subject: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new ConfigurationError(
      `${subject} cannot be read (${(error as { code?: string }).code}).`,
    )
  }
}

/** Handles a failed import of the embedded database. @throws ConfigurationError if it is not installed */
export function withoutEmbedded(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  throw new ConfigurationError(
    'DATABASE_URL must be set: this installation has no embedded PostgreSQL.',
  )
}
