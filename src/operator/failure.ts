/** Something that the person at the keyboard can do something about; the message is one sentence. */
export class Failure extends Error {
  override name = 'Failure'
}
