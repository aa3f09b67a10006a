// @ts-check
/** Process of the service: `npm start`. JavaScript: for a first file in TypeScript, Node.js loads its compiler (50 ms, 15 MB). */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// Without a handler, a reload of systemd in the first second would end the process. The start reads all files anyway.
process.on('SIGHUP', () => {})

// Saves a third of the processor time of a start. It must come before the first import of TypeScript.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compile'))
const { start } = await import('./service.ts')

try {
  await start()
} catch (error) {
  const { OperatorError } = await import('./operator-error.ts')
  const { message, stack, syscall } = /** @type {NodeJS.ErrnoException} */ (error)
  // Errors of system calls, such as `getaddrinfo ENOTFOUND`, need no stack.
  const needsStack = !(error instanceof OperatorError) && syscall === undefined
  process.stderr.write(`${needsStack ? stack : message}\n`)
  process.exit(1)
}
