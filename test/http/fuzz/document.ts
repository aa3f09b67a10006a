/** Parameter of an operation, from the served document. */
export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  schema: { format?: string; pattern?: string; default?: string }
}

export interface Operation {
  id: string
  path: string
  parameters: Parameter[]
}

interface Document {
  components: { parameters?: Record<string, Parameter> }
  paths: Record<string, { get: { operationId: string; parameters: (Parameter | Reference)[] } }>
}

interface Reference {
  $ref: string
}

/** Reads every operation of the document with its parameters. */
export function operationsOf(text: string): Operation[] {
  const { components, paths }: Document = JSON.parse(text)
  const resolved = (part: Parameter | Reference) =>
    '$ref' in part ? components.parameters?.[part.$ref.split('/').at(-1) ?? ''] : part
  return Object.entries(paths).map(([path, { get }]) => ({
    path,
    id: get.operationId,
    parameters: get.parameters.map(resolved).filter((part) => part !== undefined),
  }))
}
