import { isDeepStrictEqual } from 'node:util'

type Json = Record<string, unknown>
/** A request may be limited no further. A response may promise no less. */
type Direction = 'request' | 'response'

/** Keywords that limit a value from above, and their opposites. */
/** Lists of responses that may grow: an error may get a new `code` or status. The types of transactions may not. */
const OPEN_LISTS = /\.(code|status)$/

const MAXIMA = ['maximum', 'maxLength', 'maxItems']
const MINIMA = ['minimum', 'minLength', 'minItems']

/**
 * Compares two versions of the OpenAPI document.
 * @returns a sentence for each change that breaks clients of `before` (src/http/openapi/guide.md, "Compatibility")
 */
export function breakingChanges(before: Json, after: Json): string[] {
  const sentences = new Set<string>()
  const compared = new Set<string>()
  const report = (place: string, change: string) => sentences.add(`${place} ${change}.`)
  const resolvedBefore = (part: unknown) => resolved(before, part)
  const resolvedAfter = (part: unknown) => resolved(after, part)

  function compareSchemas(old: unknown, now: unknown, direction: Direction, place: string): void {
    const { $ref } = nonNull(old)
    if (typeof $ref === 'string' && nonNull(now).$ref === $ref) {
      const becameNull = isNullable(now) && !isNullable(old)
      if (direction === 'response' && becameNull) report(place, 'may be null')
      const name = String($ref.split('/').at(-1))
      if (compared.has(direction + name)) return
      compared.add(direction + name)
      compareSchemas(resolvedBefore({ $ref }), resolvedAfter({ $ref }), direction, name)
      return
    }
    const isRequest = direction === 'request'
    const wasTypes = typesOf(before, old)
    const types = typesOf(after, now)
    const [narrow, wide] = isRequest ? [wasTypes, types] : [types, wasTypes]
    const isIncluded = (type: unknown) =>
      wide.includes(type) || (type === 'integer' && wide.includes('number'))
    if (!narrow.every(isIncluded)) {
      report(place, `was of type ${wasTypes.join(' or ')} and is of type ${types.join(' or ')}`)
      return
    }
    const was = resolvedBefore(nonNull(old))
    const is = resolvedAfter(nonNull(now))
    for (const keyword of ['format', 'pattern', 'default', 'const']) {
      const isFree = isRequest ? is[keyword] === undefined : was[keyword] === undefined
      // A default of a request is a promise in both directions.
      if (isDeepStrictEqual(was[keyword], is[keyword]) || (isFree && keyword !== 'default'))
        continue
      report(place, `had the ${keyword} ${shown(was[keyword])} and has ${shown(is[keyword])}`)
    }
    for (const keyword of [...MAXIMA, ...MINIMA]) {
      const sign = MAXIMA.includes(keyword) === isRequest ? 1 : -1
      const none = MAXIMA.includes(keyword) ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
      const change = Number(is[keyword] ?? none) - Number(was[keyword] ?? none)
      if (change * sign < 0)
        report(place, `had the ${keyword} ${shown(was[keyword])} and has ${shown(is[keyword])}`)
    }
    compareValues(
      was.enum as unknown[] | undefined,
      is.enum as unknown[] | undefined,
      isRequest,
      place,
    )
    const required = listOf(is.required)
    for (const [name, property] of Object.entries(objectOf(was.properties))) {
      const { [name]: now } = objectOf(is.properties)
      if (now === undefined) report(`${place}.${name}`, 'was removed')
      else compareSchemas(property, now, direction, `${place}.${name}`)
      if (
        !isRequest &&
        listOf(was.required).includes(name) &&
        now !== undefined &&
        !required.includes(name)
      ) {
        report(`${place}.${name}`, 'may be absent')
      }
    }
    for (const name of isRequest ? required : []) {
      if (!listOf(was.required).includes(name)) report(`${place}.${name}`, 'is required')
    }
    if (was.items) compareSchemas(was.items, is.items, direction, `${place}[]`)
  }

  function compareValues(
    was: unknown[] | undefined,
    is: unknown[] | undefined,
    isRequest: boolean,
    at: string,
  ) {
    for (const value of was ?? []) {
      if (is !== undefined && !is.includes(value))
        report(at, `no longer has the value ${shown(value)}`)
    }
    const isOpen = isRequest || OPEN_LISTS.test(at)
    for (const value of is ?? []) {
      if (!isOpen && was !== undefined && !was.includes(value))
        report(at, `has the new value ${shown(value)}`)
    }
    if (!was && is && isRequest) report(at, 'is limited to certain values')
    if (was && !is && !isRequest) report(at, 'is no longer limited to certain values')
  }

  function compareParameters(old: unknown, now: unknown, operation: string): void {
    const byName = (list: unknown, resolve: typeof resolvedAfter) =>
      new Map(
        listOf(list)
          .map(resolve)
          .map((part) => [`${part.in} parameter ${part.name}`, part]),
      )
    const known = byName(old, resolvedBefore)
    const current = byName(now, resolvedAfter)
    for (const [name, was] of known) {
      const is = current.get(name)
      const place = `${operation}: ${name}`
      if (is === undefined) report(place, 'was removed')
      else compareSchemas(was.schema, is.schema, 'request', place)
    }
    for (const [name, { required }] of current) {
      if (required && !known.get(name)?.required) report(`${operation}: ${name}`, 'is required')
    }
  }

  function compareResponses(was: Json, is: Json, place: string): void {
    const headers = objectOf(is.headers)
    for (const [name, part] of Object.entries(objectOf(was.headers))) {
      const header = resolvedBefore(part)
      const now = resolvedAfter(headers[name])
      if (headers[name] === undefined) report(`${place}: header ${name}`, 'was removed')
      else compareSchemas(header.schema, now.schema, 'response', `${place}: header ${name}`)
      if (header.required && headers[name] && !now.required)
        report(`${place}: header ${name}`, 'may be absent')
    }
    const content = objectOf(is.content)
    for (const [type, part] of Object.entries(objectOf(was.content))) {
      if (content[type] === undefined) report(`${place}: ${type}`, 'was removed')
      else
        compareSchemas(
          objectOf(part).schema,
          objectOf(content[type]).schema,
          'response',
          `${place}: ${type}`,
        )
    }
  }

  for (const [path, methods] of Object.entries(objectOf(before.paths))) {
    for (const [method, part] of Object.entries(objectOf(methods))) {
      const operation = `${method.toUpperCase()} ${path}`
      const was = objectOf(part)
      const { [method]: found } = objectOf(objectOf(after.paths)[path])
      const is = objectOf(found)
      if (found === undefined) {
        report(operation, 'was removed')
        continue
      }
      if (was.operationId !== is.operationId)
        report(operation, `has the operationId ${is.operationId}`)
      const security = [was.security ?? before.security, is.security ?? after.security]
      if (!isDeepStrictEqual(...(security as [unknown, unknown])))
        report(operation, 'needs other credentials')
      compareParameters(was.parameters, is.parameters, operation)
      for (const [status, response] of Object.entries(objectOf(was.responses))) {
        const { [status]: now } = objectOf(is.responses)
        if (now === undefined) report(`${operation}: response ${status}`, 'was removed')
        else
          compareResponses(
            resolvedBefore(response),
            resolvedAfter(now),
            `${operation}: response ${status}`,
          )
      }
    }
  }
  return [...sentences]
}

function objectOf(value: unknown): Json {
  return (value ?? {}) as Json
}

function listOf(value: unknown): unknown[] {
  return (value ?? []) as unknown[]
}

function shown(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value)
}

/** Follows a reference within the document. */
function resolved(document: Json, part: unknown): Json {
  const { $ref } = objectOf(part)
  if (typeof $ref !== 'string') return objectOf(part)
  const [, ...names] = $ref.split('/')
  return names.reduce((at, name) => objectOf(at[name]), document)
}

/** The schema of the values other than null: `anyOf` in this document has one schema and null. */
function nonNull(schema: unknown): Json {
  const { anyOf } = objectOf(schema)
  return anyOf === undefined ? objectOf(schema) : objectOf(listOf(anyOf)[0])
}

function isNullable(schema: unknown): boolean {
  return listOf(objectOf(schema).anyOf).some((part) => objectOf(part).type === 'null')
}

function typesOf(document: Json, schema: unknown): unknown[] {
  const { anyOf } = objectOf(schema)
  if (anyOf !== undefined) return listOf(anyOf).flatMap((part) => typesOf(document, part))
  return [resolved(document, schema).type].flat()
}
