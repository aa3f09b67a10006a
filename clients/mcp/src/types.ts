import type { AccountTransactionType } from '../../typescript/src/index.ts'
import { EFFECTS } from '../../typescript/src/rows.ts'

/** Texts of a union that also allows any other text. */
type KnownText<Text> = Text extends string ? (string extends Text ? never : Text) : never

/** Direction of the cash of each account type. A type that is missing here is an error of the compiler. */
const ACCOUNT_TYPES: Record<KnownText<AccountTransactionType>, string> = {
  COUPON: 'interest of a bond',
  DEPOSIT: 'cash paid in',
  DIVIDENDS: 'dividend that arrived',
  DIVIDEND_RETENTION: 'tax withheld from a dividend',
  DIVIDEND_RETENTION_REFUND: 'withheld tax that came back',
  FEES: 'fees',
  FEES_REFUND: 'fees that came back',
  FOREX_DEPOSIT: 'currency exchange, cash in',
  FOREX_WITHDRAWAL: 'currency exchange, cash out',
  GIFT: 'gift of the institution',
  INTEREST: 'interest received',
  INTEREST_CHARGE: 'interest paid',
  RETURN_ON_CAPITAL: 'capital paid back',
  TAXES: 'taxes',
  TAX_REFUND: 'taxes that came back',
  WITHDRAWAL: 'cash paid out',
  UNKNOWN: 'not yet classified',
}

export type ListArgument = 'portfolio' | 'account'

/** Types of each list. */
export const TYPES: Record<ListArgument, readonly string[]> = {
  portfolio: Object.keys(EFFECTS),
  account: Object.keys(ACCOUNT_TYPES),
}

/** Places where the same money may stand twice. Only the institution knows whether it does. */
export const FEE_PLACES =
  'Fees may stand in rows of FEES (account list), and in commission (both lists).'
export const TAX_PLACES =
  'Withheld tax may stand in taxes (both lists), in retentionFrom and retentionTo (portfolio list), and in rows of DIVIDEND_RETENTION and TAXES (account list).'

/** Resource of the types, for assistants. */
export const TYPES_TEXT = `# Types of portfolio transactions
Effect on the position: + adds titles, - removes them. With =, titles is the size of the position at that time, or unknown.
${Object.entries(EFFECTS)
  .map(([type, effect]) => `${type}: ${effect ?? 'not defined'}`)
  .join('\n')}

# Types of account transactions
${Object.entries(ACCOUNT_TYPES)
  .map(([type, meaning]) => `${type}: ${meaning}`)
  .join('\n')}

# What the lists do not say
- Realised gains, cost basis, prices of today, balances and performance. They are not here, and cannot be added up from amounts.
- What changed since an earlier time. Rows come late, are corrected and are removed; the days are effective days.
- Dividends: whether amount of a portfolio row is before or after taxes. No field links it to the cash in the account list.
- ${FEE_PLACES} ${TAX_PLACES} Whether these are the same money is not stated.
- Signs of commission and taxes, and whether amount includes them: they are those of the institution.
- Cash of trades: the account list has no type for purchases and sales, so its sum is not the balance.
- Names and ISINs: only transfer orders have them, so some investments have none.
- Currencies are not converted. An empty currency means that the institution names none.
- EXPIRATION: its effect on the position is not defined. UNKNOWN rows get their type later.
`
