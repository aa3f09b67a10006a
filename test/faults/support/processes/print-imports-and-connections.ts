import * as modules from 'node:module'
import { Socket } from 'node:net'

/**
 * Goes before a program, with Node's --import, and tells on its standard error which modules it loads, and
 * where it connects to.
 */
modules.registerHooks({
  load: (url, context, next) => {
    process.stderr.write(`loads ${url}\n`)
    return next(url, context)
  },
})

const own = Socket.prototype as { connect(...target: unknown[]): Socket }
const { connect } = own
own.connect = function (this: Socket, ...target) {
  process.stderr.write(`connects to ${JSON.stringify(target)}\n`)
  return connect.apply(this, target)
}
