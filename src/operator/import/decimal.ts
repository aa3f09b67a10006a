import { DECIMAL_FRACTION_DIGITS, DECIMAL_INTEGER_DIGITS } from '../../schemas/decimal.ts'

/**
 * The exact decimal that a JSON number stands for, without an exponent: `1e5` is 100000, and `1.50`
 * keeps its zero. Undefined where it has more digits than a decimal may have (contract item 11).
 */
export function plainDecimal(number: string): string | undefined {
  if (decimalFault(number)) return undefined
  const { sign, digits, point } = dissect(number)
  // Of a zero only the decimals remain, whatever its exponent.
  const isZero = firstDigit(digits) === -1
  const whole = isZero ? '' : digits.slice(0, Math.max(point, 0)).padEnd(point, '0')
  const fraction = digits.slice(Math.max(point, 0)).padStart(digits.length - point, '0')
  return `${sign}${whole.replace(/^0+/, '') || '0'}${fraction === '' ? '' : `.${fraction}`}`
}

/** Which limit the number breaks, if any. */
export function decimalFault(number: string): string | undefined {
  const { digits, point } = dissect(number)
  const first = firstDigit(digits)
  if (first !== -1 && point - first > DECIMAL_INTEGER_DIGITS) {
    return `has more than ${DECIMAL_INTEGER_DIGITS} digits before the decimal point`
  }
  if (digits.length - point > DECIMAL_FRACTION_DIGITS) {
    return `has more than ${DECIMAL_FRACTION_DIGITS} digits after the decimal point`
  }
  return undefined
}

/** All digits in a row, and before which of them the decimal point stands: it may be off either end. */
function dissect(number: string): { sign: string; digits: string; point: number } {
  const [mantissa = '', exponent = '0'] = number.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const sign = mantissa.startsWith('-') ? '-' : ''
  return { sign, digits: whole + fraction, point: whole.length + Number(exponent) }
}

function firstDigit(digits: string): number {
  return digits.search(/[1-9]/)
}
