import { Backend } from './backend.ts'
import type { Host } from './host.ts'
import { Link, type SimulatedSocket, type Watcher } from './link.ts'
import type { World } from './world.ts'

/** The hosts, and the connections to them. */
export class Network implements Watcher {
  readonly hosts: Host[] = []
  /** Times of the errors of sockets. */
  readonly failures: number[] = []
  onReadSent: Watcher['onReadSent'] = () => {}
  onAnswer: Watcher['onAnswer'] = () => {}
  readonly #world: World
  /** Connections whose client has not closed them. */
  #links: Link[] = []
  #opened = 0

  constructor(world: World) {
    this.#world = world
  }

  /** Connections that the client has open, also while they open. */
  get links(): readonly Link[] {
    this.#links = this.#links.filter(({ isOpen }) => isOpen)
    return this.#links
  }

  /** Time of the last error of a socket. */
  get failedAt(): number {
    return this.failures.at(-1) ?? 0
  }

  get now(): number {
    return this.#world.now
  }

  linksTo(host: Host): Link[] {
    return this.links.filter((link) => link.host === host.name)
  }

  /** Opens a connection, as the host and the network allow. */
  open(socket: SimulatedSocket, name: string): Link {
    const world = this.#world
    this.#opened += 1
    const link = new Link(world, { id: this.#opened, host: name, socket, watcher: this })
    this.#links.push(link)
    const host = this.hosts.find((each) => each.name === name)
    world.journal.record('connects', link.id, name)
    if (host === undefined || !host.isUp || host.refuses) {
      world.clock.after(link.latencyMs, () => socket.fail('ECONNREFUSED', 'connect ECONNREFUSED'))
      return link
    }
    if (host.ignoresConnections) {
      link.silence()
      return link
    }
    world.clock.after(link.latencyMs + host.connectMs, () => {
      if (socket.destroyed) return
      const backend = new Backend(host, link)
      host.backends.add(backend)
      link.accept(backend)
      socket.emit('connect')
    })
    return link
  }
}
