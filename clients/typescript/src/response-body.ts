/** Most bytes of a JSON response, after decompression: 10,000 usual rows have a tenth. */
const MAX_BYTES = 64 * 2 ** 20
/** Most bytes of a response that is no 200. */
const MAX_ERROR_BYTES = 2 ** 20
/** Length of a text that JSON.parse() reads in little memory, however deep it is. */
const SMALL_LENGTH = 2 ** 20
/** Most objects and lists around a value. A row has three. */
const MAX_DEPTH = 32

type Fields = Record<string, unknown>

/** A response that the client does not use. The message has no text of it. */
export class UnusableResponse extends Error {}

/** Reads JSON, within bounds of its size and depth. */
export async function jsonOf(response: Response): Promise<unknown> {
  const text = await textOf(response, MAX_BYTES)
  if (text === undefined)
    throw new UnusableResponse(
      `The response is larger than ${MAX_BYTES / 2 ** 20} MiB: use a smaller page size`,
    )
  if (text.length > SMALL_LENGTH && !isShallowText(text)) throw tooDeep()
  const body: unknown = JSON.parse(text)
  // Rows are checked one by one, but not what a later version adds.
  if (!isShallow(body)) throw tooDeep()
  return body
}

/** Reads the text of an error; undefined if it is too large. The caller ends the response. */
export function errorTextOf(response: Response): Promise<string | undefined> {
  return textOf(response, MAX_ERROR_BYTES)
}

async function textOf(response: Response, maxBytes: number): Promise<string | undefined> {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for (;;) {
    const part = await reader?.read()
    if (part === undefined || part.done) return text + decoder.decode()
    bytes += part.value.byteLength
    if (bytes > maxBytes) return undefined
    text += decoder.decode(part.value, { stream: true })
  }
}

export function tooDeep(): UnusableResponse {
  return new UnusableResponse('The response has too many objects or lists in each other')
}

/** Returns whether JSON has no more objects and lists in each other than it may. */
function isShallowText(text: string): boolean {
  let depth = 0
  let isInText = false
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]
    if (isInText && character === '\\') index += 1
    else if (character === '"') isInText = !isInText
    else if (!isInText && (character === '[' || character === '{')) depth += 1
    else if (!isInText && (character === ']' || character === '}')) depth -= 1
    if (depth > MAX_DEPTH) return false
  }
  return true
}

/** Returns whether a value has no more than `depth` objects and lists in each other. */
export function isShallow(value: unknown, depth: number = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (depth === 0) return false
  for (const name in value) if (!isShallow((value as Fields)[name], depth - 1)) return false
  return true
}
