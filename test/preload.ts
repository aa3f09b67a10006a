/**
 * Loads tap without its async hook, before each test file. With the hook, tap follows each promise, to find
 * the test of an error that nothing catches. That takes an eighth of the processor time of the tests.
 * Without it, such an error still fails the file, with its stack.
 */
import asyncHooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

const { createHook } = asyncHooks
asyncHooks.createHook = () => {
  const hook = { enable: () => hook, disable: () => hook }
  return hook
}
syncBuiltinESMExports()
await import('tap')
asyncHooks.createHook = createHook
syncBuiltinESMExports()
