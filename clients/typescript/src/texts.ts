declare const decimal: unique symbol

/**
 * Exact decimal as text, such as `-406.20`: up to 38 digits before the point and 38 after it, without an
 * exponent. Give it to a decimal library or to a `numeric` column. `Number()` would round it.
 */
export type Decimal = string & { readonly [decimal]: never }

/** Text outside of a list of known ones. Editors still complete the known ones. */
export type OtherText = string & {}
