import { CommanderError } from 'commander'
import { ConfigurationError } from '../config.ts'
import { CALL } from './command.ts'
import { explainDatabaseError } from './explain.ts'
import { Failure, UsageMistake } from './failure.ts'
import { ImportRejected } from './import/faults.ts'

/** How a command ended that did not do its work. */
export interface Outcome {
  /** 2 where the command was not called as it wants to be, 1 for all else. */
  exitCode: number
  sentence: string
  json: object
}

/** What an error means for the person, or the script, that called the command. */
export function outcomeOf(error: unknown, verbose: boolean): Outcome {
  // Help was asked for and shown, or was shown because there was no command.
  if (error instanceof CommanderError && error.code.startsWith('commander.help')) {
    return { exitCode: error.exitCode === 0 ? 0 : 2, sentence: '', json: {} }
  }
  if (error instanceof CommanderError || error instanceof UsageMistake) {
    return outcome(2, `${usageSentence(error.message)} See ${CALL} --help.`)
  }
  if (error instanceof ImportRejected) {
    const { faults, total } = error
    return { exitCode: 1, sentence: error.message, json: { error: 'rejected', faults, total } }
  }
  if (isForPeople(error)) return outcome(1, error.message)
  return outcome(1, explainDatabaseError(error) ?? unexpected(error, verbose))
}

function isForPeople(error: unknown): error is Error {
  if (error instanceof Failure || error instanceof ConfigurationError) return true
  // Of a module that a production image does not have.
  return (
    error instanceof Error &&
    /^(EmbeddedDatabaseInUse|NoEmbeddedDatabase|DataFolderUnusable)$/.test(error.name)
  )
}

function outcome(exitCode: number, sentence: string): Outcome {
  return { exitCode, sentence, json: { error: sentence } }
}

/** Commander's messages, as a sentence each. */
function usageSentence(message: string): string {
  const text = message.replace(/^error: /, '').replaceAll(/\s+/g, ' ')
  return text.charAt(0).toUpperCase() + text.slice(1).replace(/([^.?)])$/, '$1.')
}

function unexpected(error: unknown, verbose: boolean): string {
  if (verbose && error instanceof Error) return error.stack ?? error.message
  const message = error instanceof Error ? error.message : String(error)
  return `Something unexpected went wrong: ${message} (--verbose tells where).`
}
