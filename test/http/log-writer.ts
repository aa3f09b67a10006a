/*
 * Writes log lines to standard output, as its parent process orders: `{ write: [line …] }` writes them in
 * one tick of the event loop. `{ end: 'exit' }` ends the process at once, `{ end: 'shutdown' }` in order.
 * It sends the number of dropped lines after each message.
 */
import fastify from 'fastify'
import { logDestination } from '../../src/http/request-log.ts'

export interface LogCommand {
  write?: string[]
  end?: 'exit' | 'shutdown'
}

const destination = logDestination((lines) => `${lines}end of a write\n`)
const app = fastify({ logger: { stream: destination } })
app.decorate('droppedLogLines', () => 0)
destination.reportDrops(app)

process.on('message', async ({ write = [], end }: LogCommand) => {
  for (const line of write) destination.write(`${line}\n`)
  if (end === 'exit') process.exit()
  if (end === 'shutdown') {
    await destination.end()
    process.exit()
  }
  setTimeout(() => process.send?.(app.droppedLogLines()), 20)
})
process.send?.(0)
