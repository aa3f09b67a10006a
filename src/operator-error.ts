/** An error that the operator can resolve. Its message is for the operator and needs no stack. */
export class OperatorError extends Error {
  override name = 'OperatorError'
}
