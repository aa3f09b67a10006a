import * as modules from 'node:module'
import { Socket } from 'node:net'

/* Preloaded with Node's --import. Prints each imported module and the target of each connection. */
modules.registerHooks({
  load: (url, context, next) => {
    process.stderr.write(`imports ${url}\n`)
    return next(url, context)
  },
})

const prototype = Socket.prototype as { connect(...target: unknown[]): Socket }
const { connect } = prototype
prototype.connect = function (this: Socket, ...target) {
  process.stderr.write(`connects to ${JSON.stringify(target)}\n`)
  return connect.apply(this, target)
}
