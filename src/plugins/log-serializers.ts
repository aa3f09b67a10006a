import type { FastifyRequest, FastifyServerOptions } from 'fastify'

type Logger = NonNullable<FastifyServerOptions['logger']>

/**
 * A logger that writes nothing that may be a secret, whoever hands it over. Fastify's own serializers
 * would print the address of a request, with the connection's token in it, and every property of an
 * error, such as the claims of a token.
 */
export function discreet(logger: Logger): Logger {
  return typeof logger === 'object' ? { ...logger, serializers } : logger
}

const serializers = {
  req: ({ id, method, routeOptions }: FastifyRequest) => ({ id, method, route: routeOptions?.url }),
  res: ({ statusCode = 0 }: { statusCode?: number }) => ({ statusCode }),
  err: (error: unknown) => loggedError(error),
}

interface LoggedError extends Record<string, unknown> {
  type: string
  message: string
  stack: string
}

/** An error without the other things that libraries hang on theirs. */
function loggedError(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: '', stack: '' }
  const { name: type, message, stack = '', cause } = error
  const { code } = error as { code?: unknown }
  const because: object = cause && depth < 3 ? { cause: loggedError(cause, depth + 1) } : {}
  return { type, message, code, stack, ...because }
}
