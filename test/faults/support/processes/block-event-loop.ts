/*
 * Goes before a program, with Node's --import: from one SIGWINCH to the next, which the service itself
 * leaves alone, its event loop is late, as with work that leaves no room for anything else.
 */

/** How long each turn of the loop takes then. */
const TURN_MS = 300

let late = false
process.on('SIGWINCH', () => {
  late = !late
  if (late) turn()
})

function turn(): void {
  for (const end = performance.now() + TURN_MS; performance.now() < end; );
  if (late) setImmediate(turn)
}
