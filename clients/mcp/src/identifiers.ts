import { Refusal } from './refusal.ts'

const SHORTEST = 8

/** Shortens identifiers, which are UUIDs: a third of the answer would otherwise be hexadecimal digits. */
export class Identifiers {
  readonly #all: readonly string[]
  readonly #length: number

  /** @param all identifiers of one kind, of the whole connection */
  constructor(all: Iterable<string | null>) {
    this.#all = [...new Set(all)].filter((id) => id !== null)
    let length = SHORTEST
    while (!areDifferent(this.#all, length)) length += 4
    this.#length = length
  }

  /** Returns the beginning of an identifier that no other one has. */
  short(id: string | null): string {
    return id?.slice(0, this.#length) ?? ''
  }

  /**
   * Checks that one identifier begins with a text.
   * @throws Refusal if there is none, or more than one
   */
  expectOne(name: string, beginning: string): void {
    const found = this.#all.filter((id) => id.startsWith(beginning.toLowerCase()))
    const [first, second] = found
    if (first === undefined)
      throw new Refusal(`The list has no ${name} with this identifier: see an earlier answer.`)
    if (second !== undefined)
      throw new Refusal(`Several identifiers begin with the text of ${name}: give more digits.`)
  }
}

/** True if no two identifiers have the same beginning of a length. */
function areDifferent(ids: readonly string[], length: number): boolean {
  const beginnings = new Set<string>()
  for (const id of ids) {
    const beginning = id.slice(0, length)
    if (beginnings.has(beginning)) return false
    beginnings.add(beginning)
  }
  return true
}
