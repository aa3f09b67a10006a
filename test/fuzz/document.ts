/** A parameter of an operation, as the served document describes it. */
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

/** Every operation of the document, its parameters with it. */
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
