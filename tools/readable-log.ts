import { prettyFactory } from 'pino-pretty'

/** Control characters that JSON escapes, and those that it does not escape but that terminals obey. */
const CONTROL = /\\u00[01][0-9a-f]|[\u0080-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Formats lines of JSON for a person at a terminal. Control characters stay visible. */
export function readableLog(): (lines: string) => string {
  const format = prettyFactory({
    // NO_COLOR and TERM=dumb switch colors off.
    colorize: process.stdout.hasColors(),
    singleLine: true,
    ignore: 'pid,hostname',
    translateTime: 'SYS:HH:MM:ss.l',
  })
  const visible = (line: string) =>
    line.replace(CONTROL, (found) => (found.length > 1 ? `\\${found}` : '\ufffd'))
  return (lines) => lines.split('\n').filter(Boolean).map(visible).map(format).join('')
}
