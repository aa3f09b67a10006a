import { type Config, readConfig } from './config.ts'
import { readSecretFiles } from './env-file.ts'

/** Settings with passwords, which may change without a restart. */
export type Secrets = Pick<Config, 'DATABASE_URL' | 'DATABASE_REPLICA_URL' | 'REDIS_URL'>

export interface SecretFiles {
  /** Reads the files of secrets again. The last values stay in use if the new ones cannot be read. */
  newest(): Secrets
  /** Reads the files of secrets, and has them used. @throws an error if they cannot be read or used */
  renew(use: () => Promise<void>): Promise<void>
  /** True if the files could not be read or used. */
  failed(): boolean
}

/** Reads secrets from the environment and its files. @param initial values that were read at the start */
export function openSecrets(environment: NodeJS.ProcessEnv, initial: Secrets): SecretFiles {
  let last = initial
  let isUnreadable = false
  /** Result of the last SIGHUP: a connection that reads the files later does not try them. */
  let isRefused = false
  const read = () => {
    readSecretFiles(environment)
    const {
      DATABASE_URL = initial.DATABASE_URL,
      DATABASE_REPLICA_URL,
      REDIS_URL,
    } = readConfig(environment)
    last = { DATABASE_URL, DATABASE_REPLICA_URL, REDIS_URL }
  }
  return {
    newest() {
      try {
        read()
        isUnreadable = false
      } catch {
        // SIGHUP reports the error, and a metric does.
        isUnreadable = true
      }
      return last
    },
    async renew(use) {
      try {
        read()
        await use()
        isUnreadable = false
        isRefused = false
      } catch (error) {
        isRefused = true
        throw error
      }
    },
    failed: () => isUnreadable || isRefused,
  }
}
