import { type DestinationStream, pino } from 'pino'

/**
 * Standard output, to which the lines of one turn of the event loop go in one write: under load, a tenth
 * of what the shortest request costs is the writing of its line. Nothing waits longer than that turn, and
 * whatever is there when the process exits is still written.
 */
export function logDestination(): DestinationStream {
  const output = pino.destination({ fd: 1, sync: true })
  let lines = ''
  const flush = () => {
    if (lines === '') return
    output.write(lines)
    lines = ''
  }
  process.on('exit', flush)
  return {
    write: (line) => {
      if (lines === '') setImmediate(flush)
      lines += line
    },
  }
}
