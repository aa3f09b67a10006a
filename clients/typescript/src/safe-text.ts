/** Longest text of a response that an error repeats, in UTF-16 units. */
const MAX_LENGTH = 500

/**
 * Returns a function that makes a text of a response safe for an error and its log: a service or a proxy may repeat the
 * request, which has both tokens, or send line breaks and control characters. A text with a token is left out.
 * @param tokens of the app and of the connection
 */
export function safeTextOf(tokens: readonly string[]): (text: string) => string {
  return (text) => {
    if (hasToken(text, tokens)) return '(left out, because it has a token)'
    const printable = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]+/gu, ' ')
    return printable.length > MAX_LENGTH ? `${printable.slice(0, MAX_LENGTH)} …` : printable
  }
}

/** True if a text has a token, also with characters that are percent-encoded. */
function hasToken(text: string, tokens: readonly string[]): boolean {
  const decoded = text.replace(/%([0-9a-f]{2})/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  const forms = tokens.flatMap((token) => [token, encodeURIComponent(token)])
  return forms.some((form) => form !== '' && (text.includes(form) || decoded.includes(form)))
}
