import { type Examples, problemExamples } from './examples.ts'

interface Header {
  required?: boolean
  schema: { required?: boolean }
}

interface Response {
  headers?: Record<string, Header>
  content?: Record<string, { examples?: object | undefined }>
}

/** An operation of the document, as @fastify/swagger writes it. */
export interface Operation {
  operationId: string
  responses: Record<string, Response>
  'x-codeSamples'?: object[]
}

/** Adds to an operation what @fastify/swagger cannot write. @param examples of 200, by media type */
export function completeOperation({ responses }: Operation, examples: Examples[string]): void {
  for (const [status, response] of Object.entries(responses)) {
    // The library writes no `required` of a header: the schemas of the responses have it.
    for (const header of Object.values(response.headers ?? {})) {
      const { required = false, ...schema } = header.schema
      if (required) header.required = true
      header.schema = schema
    }
    // The library copies a schema with its examples. Numbers would lose their exact digits.
    for (const [type, content] of Object.entries(response.content ?? {}))
      content.examples = status === '200' ? examples[type] : problemExamples(Number(status))
  }
}
