import { type Static, Type } from '@sinclair/typebox'
import { Component, Reference } from './component.ts'
import { ParameterFault } from './parameter-fault.ts'
import { ProblemCode, ProblemCodes } from './problem-code.ts'

const explanations = Object.values(ProblemCodes)

/** The one body of every error (contract item 16), with the member names of RFC 9457. */
export const Problem = Component(
  'Problem',
  Type.Object(
    {
      status: Type.Unsafe<(typeof explanations)[number]['status']>({
        type: 'integer',
        enum: [...new Set(explanations.map(({ status }) => status))].sort(),
        title: 'Status',
        description: 'The HTTP status of the answer.',
        examples: [404],
      }),
      code: ProblemCode,
      title: Type.String({
        title: 'Title',
        description: 'The status in words; always the same for one status.',
        examples: ['Not Found'],
      }),
      detail: Type.String({
        title: 'Detail',
        description: 'What went wrong this time, for people. Programs read `code`.',
        examples: ['This app has no connection with that token.'],
      }),
      requestId: Type.String({
        title: 'Request',
        description: 'The `X-Request-ID` of the answer. Quote it when you report a fault.',
        examples: ['6a0f2d94-71c3-4be8-9f25-d3b8e4c7a106'],
      }),
      errors: Type.Optional(
        Type.Array(Reference(ParameterFault), {
          minItems: 1,
          title: 'Errors',
          description: 'Every fault of the query parameters; only with `invalid_request`.',
        }),
      ),
    },
    {
      additionalProperties: false,
      title: 'Problem',
      description: 'Why the request failed: one body for every error of every endpoint.',
    },
  ),
)
export type Problem = Static<typeof Problem>
