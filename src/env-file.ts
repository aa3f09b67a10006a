import { accessSync, constants, readFileSync } from 'node:fs'
import { OperatorError } from './operator-error.ts'

/** Sets the variables of .env that are not set. @throws OperatorError if there is such a file, but it cannot be read */
export function readEnvFile(): void {
  try {
    // loadEnvFile() reports every file that it cannot open as a missing one.
    accessSync('.env', constants.R_OK)
    process.loadEnvFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw unreadable('.env', error)
  }
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
    const { [`${name}_FILE`]: path } = environment
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
