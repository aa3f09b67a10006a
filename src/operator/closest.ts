/** The candidate that takes the fewest edits to reach, letter case aside: what was meant, most likely. */
export function closest(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = word.slice(0, 100).toLowerCase()
  const ranked = [...candidates].map((candidate) => ({
    candidate,
    edits: editDistance(wanted, candidate.toLowerCase()),
  }))
  return ranked.sort((a, b) => a.edits - b.edits)[0]?.candidate
}

/** How many characters must be added, removed or replaced (Levenshtein's distance). */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [i, a] of [...from].entries()) {
    const next = [i + 1]
    for (const [j, b] of [...to].entries()) {
      const replaced = (row[j] ?? 0) + (a === b ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
