/** A SELECT, compiled once. With a name it is prepared once per server connection. */
export interface Statement {
  name: string
  /** The same without the digest of its text, for people. */
  title: string
  text: string
}

export type Parameter = string | Buffer | null

/** The same statement, not prepared. */
export const unnamed = (statement: Statement): Statement => ({ ...statement, name: '' })
