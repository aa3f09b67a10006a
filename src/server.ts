/** Process of the service: `npm start`. */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { OperatorError } from './operator-error.ts'

// Without a handler, a reload of systemd in the first second would end the process. The start reads all files anyway.
process.on('SIGHUP', () => {})

// Saves a quarter of the processor time of a start. It must come before the import of the service.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compile'))
const { start } = await import('./service.ts')

try {
  await start()
} catch (error) {
  const { message, stack, syscall } = error as NodeJS.ErrnoException
  // Errors of system calls, such as `getaddrinfo ENOTFOUND`, need no stack.
  const needsStack = !(error instanceof OperatorError) && syscall === undefined
  process.stderr.write(`${needsStack ? stack : message}\n`)
  process.exit(1)
}
