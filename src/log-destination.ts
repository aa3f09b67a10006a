import { type DestinationStream, pino } from 'pino'

/** Bytes of lines that may wait for the end of a turn of the event loop. */
const MOST_BYTES = 8_192

/**
 * Standard output, to which the lines of one turn of the event loop go in one write: under load, a tenth
 * of what the shortest request costs is the writing of its line. Nothing waits longer than that turn, and
 * whatever is there when the process exits is still written.
 */
export function logDestination(): DestinationStream {
  const output = pino.destination({ fd: 1, sync: true, minLength: MOST_BYTES })
  let waiting = false
  const flush = () => {
    waiting = false
    output.flushSync()
  }
  process.on('exit', flush)
  return {
    write: (line) => {
      output.write(line)
      if (waiting) return
      waiting = true
      setImmediate(flush)
    },
  }
}
