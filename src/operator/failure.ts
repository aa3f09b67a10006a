/** Something that the person at the keyboard can do something about, told in a sentence. */
export class Failure extends Error {
  override name = 'Failure'
}

/** The command was not called as it wants to be. */
export class UsageMistake extends Error {
  override name = 'UsageMistake'
}
