type Json = Record<string, unknown>

/**
 * Finds what linters of OpenAPI accept, and what makes the document useless for a reader or a generated client.
 * @returns a sentence for each fault
 */
export function documentFaults(document: Json): string[] {
  const faults: string[] = []
  visit(document, '', (part, place) => {
    if (Array.isArray(part.enum) && part.enum.length === 0) faults.push(`${place}: empty enum`)
  })
  const operations = Object.entries(partsOf(document.paths)).flatMap(([path, methods]) =>
    Object.entries(partsOf(methods)).map(([method, operation]) => ({
      place: `${method.toUpperCase()} ${path}`,
      operation: operation as Json,
    })),
  )
  for (const { place, operation } of operations) {
    for (const parameter of (operation.parameters ?? []) as Json[]) {
      const name = `${place}: parameter ${parameter.name}`
      if (!parameter.description) faults.push(`${name} without a description`)
      if (!isSchema(parameter.schema)) faults.push(`${name} without a schema`)
    }
    for (const [status, response] of Object.entries(partsOf(operation.responses))) {
      for (const [header, part] of Object.entries(partsOf((response as Json).headers))) {
        const { schema, description } = part as Json
        const name = `${place}: ${status}: header ${header}`
        if (!description) faults.push(`${name} without a description`)
        if (!isSchema(schema)) faults.push(`${name} without a schema`)
      }
      for (const [type, part] of Object.entries(partsOf((response as Json).content))) {
        const { schema, examples } = part as Json
        const name = `${place}: ${status}: ${type}`
        if (!isSchema(schema)) faults.push(`${name} without a schema`)
        if (Object.values(partsOf(examples)).some(hasNoRows))
          faults.push(`${name} has an example without rows: the sample data need some`)
      }
    }
  }
  return faults
}

/** True for a schema that says something about the value. */
function isSchema(schema: unknown): boolean {
  const { type, $ref, anyOf } = partsOf(schema)
  return type !== undefined || $ref !== undefined || anyOf !== undefined
}

/** True for the response of a list without rows. */
function hasNoRows(example: unknown): boolean {
  const { value } = partsOf(example)
  const rows = partsOf(value).items ?? value
  return Array.isArray(rows) && rows.length === 0
}

const partsOf = (value: unknown) => (value ?? {}) as Json

function visit(value: unknown, place: string, check: (part: Json, place: string) => void): void {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) check(value as Json, place)
  for (const [key, part] of Object.entries(value)) visit(part, `${place}/${key}`, check)
}
