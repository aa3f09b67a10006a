import type { TSchema } from '@sinclair/typebox'
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

/** A schema of the document, with what is added to it. */
export interface Schema {
  properties?: Record<string, { description?: string }>
}

/** Adds the descriptions of fields that are references: the library drops them, because OpenAPI 3.0 forbids them. */
export function describeReferences(
  generated: Record<string, Schema>,
  registered: readonly TSchema[],
): void {
  for (const { $id = '', properties = {} } of registered)
    for (const [name, { $ref, description }] of Object.entries<TSchema>(properties)) {
      const field = generated[$id]?.properties?.[name]
      if (field && $ref !== undefined && description !== undefined) field.description = description
    }
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
