import { ConfigurationError } from './config.ts'

/**
 * To catch the failed import of src/development with, which the production image does not hold.
 * @throws ConfigurationError that names the setting which is missing then; any other error as it is
 */
export function withoutEmbedded(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  throw new ConfigurationError(
    'DATABASE_URL must be set: there is no embedded PostgreSQL in this installation.',
  )
}
