interface Source {
  source: string
}

// TypeScript does not know these parts of JSON yet; Node 24 does.
const { parse, rawJSON } = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: Source) => unknown): unknown
  rawJSON(text: string): unknown
}

/** Parses JSON into values that JSON.stringify() writes with the very digits that they had here. */
export function parseExactly(text: string): unknown {
  return parse(text, (_key, value, { source }) =>
    typeof value === 'number' ? rawJSON(source) : value,
  )
}
