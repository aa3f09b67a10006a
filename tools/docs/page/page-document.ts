/** The parts of the OpenAPI document that the page shows. */
import type { TSchema } from '@sinclair/typebox'

type Parts<Part> = Record<string, Part>
export interface Parameter {
  name: string
  in: string
  required?: boolean
  description: string
  schema: TSchema
  example?: string
}
export interface Response {
  description: string
  headers?: Parts<{ description: string }>
  content?: Parts<{ schema: TSchema; examples?: Parts<{ value: unknown }> }>
}
export interface Operation {
  operationId: string
  summary: string
  description: string
  parameters: Parameter[]
  responses: Parts<Response>
  'x-codeSamples': { label: string; source: string }[]
}
export interface PageDocument {
  info: { title: string; version: string; description: string }
  paths: Parts<{ get: Operation }>
  components: {
    schemas: Parts<TSchema>
    securitySchemes: { appToken: { description: string } }
  }
}
