// @ts-check
/**
 * Sets up the process of the admin CLI, before the first import of TypeScript. JavaScript: for a file in TypeScript that is
 * not in the cache, Node.js loads its compiler.
 */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'

// Node.js otherwise collects garbage only at 200 MB.
setFlagsFromString('--heap-growing-percent=30')
// Loading the modules of a command then grows the space of new objects from 1 MB to 4 MB.
setFlagsFromString('--semi-space-growth-factor=4')
// Halves the processor time of a start.
enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/compile'))
