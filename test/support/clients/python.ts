import { join } from 'node:path'

/** Debian's Python, because psycopg and the tools for packages are those of Debian. */
export const PYTHON = '/usr/bin/python3'

/** Environment of Python programs that import the client from its folder. */
export const pythonEnvironment = {
  PATH: process.env.PATH,
  PYTHONPATH: `${import.meta.dirname}/../../../clients/python/src`,
  // Compiled files, beside those of Node.js. Without compiled files, a start takes a third more of processor time.
  PYTHONPYCACHEPREFIX: join(import.meta.dirname, '../../../node_modules/.cache/python'),
}
