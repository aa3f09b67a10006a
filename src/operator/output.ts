export function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

const NUMBERS = new Intl.NumberFormat('en')

/**
 * Shows progress in the last line of standard error, if that is a terminal, until its disposal. It does not change the
 * state of the terminal: an interrupted process could not restore it. `share` goes from 0 to 1; NaN is unknown.
 */
export function showProgress(
  progress: () => { step: string; done: string; share?: number },
): Disposable | undefined {
  const { env, stderr } = process
  // By convention, a dumb terminal cannot move its cursor.
  if (!stderr.isTTY || env.TERM === 'dumb') return undefined
  const start = Date.now()
  const draw = () => {
    const { step, done, share = Number.NaN } = progress()
    const part = Math.min(share, 1)
    const seconds = Math.floor((Date.now() - start) / 1_000)
    const bar = `${'='.repeat(part * 40).padEnd(40, '-')} ${Math.floor(part * 100)} %, `
    const grouped = done.replaceAll(/\d+/g, (digits) => NUMBERS.format(BigInt(digits)))
    const line = `${step} ${part >= 0 ? bar : ''}${grouped}, ${seconds} s`
    stderr.write(`\r${line.slice(0, (stderr.columns || 80) - 1)}\x1b[K`)
  }
  const timer = setInterval(draw, 200)
  const hide = () => {
    clearInterval(timer)
    stderr.write('\r\x1b[K')
  }
  return { [Symbol.dispose]: hide }
}

/** Escapes control and bidirectional characters as in JSON: names and input must not control the terminal. */
export function escaped(text: string, characters = /\p{C}/gu): string {
  const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return text.replace(characters, (character) => character.replaceAll(/[\s\S]/g, escapeUnit))
}

/** Writes JSON for a terminal. */
export const toJson = (value: object) => escaped(JSON.stringify(value))

/** Escapes the same characters as escaped(), except line breaks. */
export const printable = (text: string) => escaped(text, /[^\P{C}\n]/gu)
