/** Node.js adds this to the error of an unknown authority. The flag does not concern the files that the settings name. */
const ADVICE_OF_NODE = /; if the root CA is installed locally.*/s

/**
 * Returns the message of an error of a connection. It names the cause where Node.js hides it: the addresses of a host, or
 * the failure of a fetch.
 * @param setting names the file of the authority that signs the certificate of the server
 */
export function errorMessage(error: Error, setting = 'NODE_EXTRA_CA_CERTS'): string {
  // A host with several addresses fails with one error for each, and without a message.
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map((each) => errorMessage(each, setting)).join('; ')
  if (error.message === 'fetch failed' && error.cause instanceof Error)
    return errorMessage(error.cause, setting)
  return error.message.replace(ADVICE_OF_NODE, `: ${setting} must name the file of its authority`)
}
