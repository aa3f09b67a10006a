/** The events of a run, by their names. Two runs of one schedule have the same journal. */
export class Journal {
  readonly #lines: string[] | undefined
  readonly #now: () => number
  /** Number of events by name. */
  readonly counts = new Map<string, number>()
  #digest = 0x811c9dc5

  /** @param keepsLines false for many runs: only the digest is then known */
  constructor(now: () => number, keepsLines: boolean) {
    this.#now = now
    this.#lines = keepsLines ? [] : undefined
  }

  record(event: string, subject: string | number = '', detail: string | number = ''): void {
    this.counts.set(event, (this.counts.get(event) ?? 0) + 1)
    const line = `${this.#now()} ${event} ${subject} ${detail}`
    for (let at = 0; at < line.length; at += 1)
      this.#digest = Math.imul(this.#digest ^ line.charCodeAt(at), 0x01000193)
    this.#lines?.push(line)
  }

  get digest(): number {
    return this.#digest >>> 0
  }

  get lines(): readonly string[] {
    return this.#lines ?? []
  }
}
