/** A JSON value as it stands in its line. */
export interface Value {
  kind: 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array'
  bytes: Buffer
  /** Where in `bytes` it begins and ends: a string without its quotes, an object only its brace. */
  start: number
  end: number
  /** What it says, where its bytes do not: a string with escapes, a number with an exponent. */
  text: string | undefined
}

export function textOf({ text, bytes, start, end }: Value): string {
  return text ?? bytes.toString('utf8', start, end)
}

/** A value for people: in JSON, so that nothing in it reaches a terminal as a control sequence. */
export function shown(value: Value): string {
  if (value.kind === 'object' || value.kind === 'array') return `an ${value.kind}`
  const text = textOf(value)
  const short = text.length > 40 ? `${text.slice(0, 40)}…` : text
  return value.kind === 'string' ? JSON.stringify(short) : short
}
