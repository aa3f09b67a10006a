import { Type } from '@sinclair/typebox'

/** An argument with a closed list of texts. A union of literals would need more tokens. */
export function oneOf<Value extends string>(values: readonly Value[]) {
  // An enumeration without values is not a valid schema.
  const options = values.length === 0 ? {} : { enum: [...values] }
  return Type.Unsafe<Value>({ type: 'string', ...options })
}

/** A day of the calendar: the validator rejects 2025-02-30. */
export const day = (description: string) => Type.String({ format: 'date', description })

export const offset = Type.Optional(
  Type.Integer({ minimum: 0, description: 'nextOffset of the part before' }),
)

const identifier = (description: string) =>
  Type.String({ pattern: '^[0-9a-fA-F-]{8,36}$', description })

/** Arguments that select rows of one list. */
export const filters = {
  list: oneOf(['portfolio', 'account']),
  from: Type.Optional(day('first effective day')),
  to: Type.Optional(day('last day')),
  types: Type.Optional(
    Type.Array(Type.String({ maxLength: 60 }), {
      minItems: 1,
      maxItems: 30,
      description: 'such as DIVIDENDS',
    }),
  ),
  investment: Type.Optional(identifier('identifier, or its beginning')),
  portfolioOrAccount: Type.Optional(identifier('as investment')),
  text: Type.Optional(
    Type.String({ minLength: 1, maxLength: 80, description: 'part of the description' }),
  ),
}
