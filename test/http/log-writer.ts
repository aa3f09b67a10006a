/*
 * Writes log lines to standard output, as its parent process orders: `{ write: [line …] }` writes them in
 * one tick of the event loop. `{ end: 'exit' }` ends the process at once, `{ end: 'shutdown' }` in order.
 * It sends the number of dropped lines after each message.
 */
import { logDestination } from '../../src/http/log.ts'

export interface LogCommand {
  write?: string[]
  end?: 'exit' | 'shutdown'
}

const destination = logDestination((lines) => `${lines}end of a write\n`)

process.on('message', async ({ write = [], end }: LogCommand) => {
  for (const line of write) destination.write(`${line}\n`)
  if (end === 'exit') process.exit()
  if (end === 'shutdown') {
    await destination.end()
    process.exit()
  }
  setTimeout(() => process.send?.(destination.dropped()), 20)
})
process.send?.(0)
