import { Refusal } from './refusal.ts'

/**
 * Schema of an argument. It has no other keywords, such as `pattern` or `additionalProperties`: hosts pass it to the API of
 * a model, and some of them refuse the whole tool for one keyword. So `read` has the checks.
 */
export interface Schema {
  type: 'string' | 'integer' | 'boolean' | 'array'
  description?: string
  enum?: string[]
  items?: { type: 'string'; enum?: string[] }
}

/** An argument of a tool. */
export interface Argument<Value> {
  schema: Schema
  isRequired: boolean
  /**
   * Returns the checked value. `undefined` is a missing one.
   * @throws Refusal that says what is valid
   */
  read: (name: string, value: unknown) => Value
}

/** Arguments of a tool, by name. */
export type Arguments = Record<string, Argument<unknown>>

/** Checked values of the arguments of a tool. */
export type Values<All extends Arguments> = {
  [Name in keyof All]: ReturnType<All[Name]['read']>
}

/** Reads a value, or returns undefined if it is not valid. */
type Reader<Value> = (value: unknown) => Value | undefined

/** Returns an argument. `valid` ends the sentence that begins with its name. */
function required<Value>(schema: Schema, valid: string, reader: Reader<Value>): Argument<Value> {
  const read = (name: string, value: unknown): Value => {
    const result = reader(value)
    if (result === undefined) throw new Refusal(`${name} must be ${valid}.`)
    return result
  }
  return { schema, isRequired: true, read }
}

/** Returns the same argument, which may be missing. */
function optional<Value>({ schema, read }: Argument<Value>): Argument<Value | undefined> {
  return {
    schema,
    isRequired: false,
    read: (name, value) => (value === undefined ? undefined : read(name, value)),
  }
}

/** An enumeration without values is not a valid schema. */
const enumOf = (values: readonly string[]) => (values.length === 0 ? {} : { enum: [...values] })

const isOneOf = <Value extends string>(value: unknown, values: readonly Value[]): value is Value =>
  values.includes(value as Value)

function choice<Value extends string>(values: readonly Value[], valid = values.join(' or ')) {
  return required<Value>({ type: 'string', ...enumOf(values) }, valid, (value) =>
    isOneOf(value, values) ? value : undefined,
  )
}

/** The name of one connection. */
export const connection = (names: readonly string[]) =>
  choice(
    names,
    `the name of one connection: ${names.slice(0, 50).join(', ') || 'this server has none'}. Call once for each, and never add their figures`,
  )

export function oneOf<Value extends string>(values: readonly Value[], description: string) {
  const { schema, ...argument } = choice(values)
  return optional({ ...argument, schema: { ...schema, description } })
}

/** A day of the calendar: 2025-02-30 is none. */
export function day(description: string) {
  const valid = 'a day of the calendar, such as 2025-03-14'
  return optional(
    required({ type: 'string', description: `${description}, YYYY-MM-DD` }, valid, (value) =>
      typeof value === 'string' && isDay(value) ? value : undefined,
    ),
  )
}

function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const time = Date.parse(text)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}

/** Hosts also send a number as text. */
export function integer(min: number, max: number, description: string) {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  return optional(
    required({ type: 'integer', description }, `an integer ${range}`, (value) => {
      const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
      return Number.isSafeInteger(number) && Number(number) >= min && Number(number) <= max
        ? Number(number)
        : undefined
    }),
  )
}

export const offset = integer(0, Number.MAX_SAFE_INTEGER, 'nextOffset of the part before')

/** Hosts also send `true` as text. */
export function flag(description: string) {
  const reader = (value: unknown) => {
    if (value === true || value === 'true') return true
    return value === false || value === 'false' ? false : undefined
  }
  return optional(required({ type: 'boolean', description }, 'true or false', reader))
}

/** Hosts also send a list as text: as JSON, or with commas. */
function listOf(value: unknown): unknown[] | undefined {
  if (typeof value !== 'string') return Array.isArray(value) ? value : undefined
  if (!value.startsWith('[')) return value.split(',').map((text) => text.trim())
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}

/** Up to `max` different ones of some values. */
export function someOf<Value extends string>(
  values: readonly Value[],
  max: number,
  description: string,
) {
  const items = { type: 'string' as const, ...enumOf(values) }
  return optional(
    required<Value[]>(
      { type: 'array', items, description },
      `a list of at most ${max} of ${values.join(', ')}`,
      (value) => {
        const all = [...new Set(listOf(value))]
        const isList = listOf(value) !== undefined
        const valid = all.filter((each) => isOneOf(each, values))
        return isList && valid.length === all.length && all.length <= max ? valid : undefined
      },
    ),
  )
}

const MAX_TYPES = 30
const MAX_TYPE = 60
const isType = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_TYPE

/** Types of rows. Which ones exist depends on the list, so the tool checks that. */
const types = optional(
  required<string[]>(
    { type: 'array', items: { type: 'string' }, description: 'such as DIVIDENDS' },
    `a list of 1 to ${MAX_TYPES} types, such as ["DIVIDENDS"]`,
    (value) => {
      const all = listOf(value) ?? []
      const valid = all.filter(isType)
      const isWhole = valid.length === all.length
      return isWhole && all.length >= 1 && all.length <= MAX_TYPES ? valid : undefined
    },
  ),
)

export const identifier = (description: string) =>
  optional(
    required(
      { type: 'string', description },
      'an identifier of an answer, or its first 8 digits or more',
      (value) =>
        typeof value === 'string' && /^[0-9a-fA-F-]{8,36}$/.test(value)
          ? value.toLowerCase()
          : undefined,
    ),
  )

const MAX_TEXT = 80

const text = optional(
  required(
    { type: 'string', description: 'part of the description or name, without accents or case' },
    `1 to ${MAX_TEXT} characters of a description or a name`,
    (value) =>
      typeof value === 'string' && value.trim() !== '' && value.length <= MAX_TEXT
        ? value
        : undefined,
  ),
)

/** Arguments that select rows of one list. */
export const filters = {
  list: choice(['portfolio', 'account']),
  from: day('first effective day'),
  to: day('last day'),
  types,
  investment: identifier('identifier, or its beginning'),
  portfolioOrAccount: identifier('as investment'),
  text,
}

/**
 * Returns the checked values of a call. Hosts send null for a value that is missing.
 * @throws Refusal that names the argument and what is valid
 */
export function valuesOf<All extends Arguments>(all: All, given: unknown): Values<All> {
  const found = new Map(Object.entries(given ?? {}))
  const unknown = [...found.keys()].filter((name) => !Object.hasOwn(all, name))
  if (unknown.length > 0) {
    const names = JSON.stringify(unknown.map((name) => name.slice(0, 40)).slice(0, 5))
    throw new Refusal(
      `no argument has the name ${names}; the names are ${Object.keys(all).join(', ')}`,
    )
  }
  const values = Object.entries(all).map(([name, argument]) => {
    return [name, argument.read(name, found.get(name) ?? undefined)]
  })
  return Object.fromEntries(values)
}

/** Returns the schema of all arguments, for hosts. */
export function schemaOf(all: Arguments) {
  const entries = Object.entries(all)
  const properties = Object.fromEntries(entries.map(([name, { schema }]) => [name, schema]))
  const required = entries.filter(([, { isRequired }]) => isRequired).map(([name]) => name)
  return { type: 'object' as const, properties, required }
}
