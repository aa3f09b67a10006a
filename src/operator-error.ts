/** An error that the operator can resolve. Its message is for the operator and needs no stack. */
export class OperatorError extends Error {
  override name = 'OperatorError'
}

/** What a command looks for is not in the database: the operator may have meant another one. */
export class NotInDatabase extends OperatorError {}
