import { type Static, Type } from '@sinclair/typebox'

interface Explanation {
  readonly status: number
  readonly title: string
  readonly meaning: string
}

/**
 * Every way in which a request can fail (section 7, contract items 16 to 19): what a program reads,
 * the status that goes with it, the fixed title of that status, and the cause.
 */
export const ProblemCodes = {
  missing_credentials: {
    status: 401,
    title: 'Unauthorized',
    meaning: 'The request has no `Authorization` header',
  },
  malformed_credentials: {
    status: 401,
    title: 'Unauthorized',
    meaning: 'The `Authorization` header is not `Bearer` and one token',
  },
  invalid_token: {
    status: 401,
    title: 'Unauthorized',
    meaning: 'The bearer token is not known, or it was revoked',
  },
  expired_token: {
    status: 401,
    title: 'Unauthorized',
    meaning: 'The bearer token was valid and has expired',
  },
  invalid_request: {
    status: 400,
    title: 'Bad Request',
    meaning: 'Query parameters are at fault; `errors` lists every one',
  },
  malformed_request: {
    status: 400,
    title: 'Bad Request',
    meaning: 'The request cannot be read, for instance because its address does not decode',
  },
  connection_not_found: {
    status: 404,
    title: 'Not Found',
    meaning: 'The calling app has no connection with this token',
  },
  route_not_found: {
    status: 404,
    title: 'Not Found',
    meaning: 'The service has nothing at this address',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method Not Allowed',
    meaning: 'The address is read-only; `Allow` names its methods',
  },
  too_many_requests: {
    status: 429,
    title: 'Too Many Requests',
    meaning: 'The app has used up its quota; `Retry-After` tells when to go on',
  },
  internal_error: {
    status: 500,
    title: 'Internal Server Error',
    meaning: 'A fault of the service; its log knows the cause by `requestId`',
  },
  service_unavailable: {
    status: 503,
    title: 'Service Unavailable',
    meaning: 'Overloaded, or without its database; `Retry-After` tells when to try again',
  },
} as const satisfies Record<string, Explanation>

const rows = Object.entries<Explanation>(ProblemCodes).map(
  ([code, { status, meaning }]) => `| \`${code}\` | ${status} | ${meaning} |`,
)

/** One of the codes above; its description is their table. */
export const ProblemCode = Type.Unsafe<keyof typeof ProblemCodes>({
  type: 'string',
  enum: Object.keys(ProblemCodes),
  title: 'Code',
  description: [
    'What went wrong, for programs; from a closed list.',
    '',
    '| Code | Status | Meaning |',
    '|---|---|---|',
    ...rows,
  ].join('\n'),
  examples: ['connection_not_found'],
})
export type ProblemCode = Static<typeof ProblemCode>
