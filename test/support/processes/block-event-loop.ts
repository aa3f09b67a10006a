/*
 * Preloaded with Node's --import. SIGWINCH starts blocking the event loop, as long computations would;
 * the next SIGWINCH stops it. The service does not use this signal.
 */

/** Duration of each turn of the blocked loop. */
const TURN_MS = Number(process.env.TURN_MS)

let blocked = false
process.on('SIGWINCH', () => {
  blocked = !blocked
  if (blocked) block()
})

function block(): void {
  for (const end = performance.now() + TURN_MS; performance.now() < end; );
  if (blocked) setImmediate(block)
}
