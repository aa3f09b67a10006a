import type { Host, Session } from './host.ts'
import type { Link } from './link.ts'
import type { ServerError } from './messages.ts'
import type { Network } from './network.ts'
import type { World } from './world.ts'

/** A fault that begins at a time. */
export interface PlannedFault {
  kind: FaultKind
  /** In ms since the beginning. */
  at: number
  lastsMs: number
  /** Which server: the number of hosts divides it. */
  host: number
  /** Chooses what the kind leaves open. */
  choice: number
}

/** What a fault may change. */
export interface Targets {
  world: World
  network: Network
  host: Host
  choice: number
  /** A number from 0 to 1 for one of several things. */
  draw(purpose: string | number): number
  service: ServiceFaults
}

/** What happens to the service itself. */
export interface ServiceFaults {
  /** Takes all memory of responses that is free. @returns what gives it back */
  fillMemory(): () => void
  /** All clients leave. */
  leave(): void
  /** Replaces the user in the secrets, and the connections if `announces`. */
  renewSecrets(host: Host, announces: boolean): void
}

type End = () => void
interface Fault {
  /** How often it is chosen, in relation to the others. */
  rate: number
  begin(targets: Targets): End | undefined
}

const oneOf = <Item>(items: readonly Item[], draw: number): Item | undefined =>
  items[Math.floor(draw * items.length)]

const linkOf = ({ network, host, draw }: Targets): Link | undefined =>
  oneOf(network.linksTo(host), draw('link'))

const backendOf = ({ host, draw }: Targets): Session | undefined =>
  oneOf([...host.backends], draw('backend'))

const error = (code: string, severity: ServerError['severity'] = 'ERROR'): ServerError => ({
  severity,
  code,
  message: code === '08P01' ? 'query_wait_timeout' : `error ${code}`,
})

/** Errors of the server's state, of each class that the code names, and of others. */
const ERRORS = [
  ...['57014', '53200', '58030', '40001', '40P01', 'XX000', '22012', '25006', '55000', '42501'],
  ...['42P01', '42703'],
].map((code) => error(code))
const FATAL_ERRORS = ['57P01', '57P02', '08P01', '25P03', 'XX001'].map((code) =>
  error(code, 'FATAL'),
)

const nextTimeline = (network: Network) =>
  1 + Math.max(...network.hosts.map(({ timeline }) => timeline))
const standbyOf = (network: Network) =>
  network.hosts.find(
    ({ isStandby, isUp, options }) => isStandby && isUp && options.name !== 'replica',
  )
const primaryOf = (network: Network) =>
  network.hosts.find(({ isStandby, isUp }) => !isStandby && isUp)

export const faults = {
  'connections are refused': {
    rate: 3,
    begin: ({ host }) => {
      host.refuses = true
      return () => {
        host.refuses = false
      }
    },
  },
  'connections open slowly': {
    rate: 2,
    begin: ({ host, draw }) => {
      host.connectMs = 100 + 2_500 * draw('ms')
      return () => {
        host.connectMs = 0
      }
    },
  },
  'connections get no answer': {
    rate: 2,
    begin: ({ host }) => {
      host.ignoresConnections = true
      return () => {
        host.ignoresConnections = false
      }
    },
  },
  'all connections are reset': {
    rate: 3,
    begin: ({ network, host }) => {
      for (const link of network.linksTo(host)) link.reset()
      for (const backend of [...host.backends]) backend.vanish('reset')
      return undefined
    },
  },
  'a connection is reset': {
    rate: 3,
    begin: (targets) => {
      backendOf(targets)?.vanish('reset')
      return undefined
    },
  },
  'a connection is ended': {
    rate: 3,
    begin: (targets) => {
      backendOf(targets)?.vanish('end')
      return undefined
    },
  },
  'a router forgets the connections': {
    rate: 3,
    begin: ({ network, host }) => {
      for (const link of network.linksTo(host)) link.isForgotten = true
      return undefined
    },
  },
  'all connections are silent': {
    rate: 3,
    begin: ({ network, host }) => {
      for (const link of network.linksTo(host)) link.silence()
      return undefined
    },
  },
  'a connection is silent': {
    rate: 4,
    begin: (targets) => {
      linkOf(targets)?.silence()
      return undefined
    },
  },
  'requests are lost': {
    rate: 2,
    begin: (targets) => {
      const link = linkOf(targets)
      if (link) link.requestBytesLeft = 0
      return undefined
    },
  },
  'answers are lost': {
    rate: 2,
    begin: (targets) => {
      const link = linkOf(targets)
      if (link) link.bytesLeft = 0
      return undefined
    },
  },
  'a request stops in the middle': {
    rate: 2,
    begin: (targets) => {
      const link = linkOf(targets)
      if (link) link.requestBytesLeft = 1 + Math.floor(600 * targets.draw('bytes') ** 2)
      return undefined
    },
  },
  'an answer stops in the middle': {
    rate: 4,
    begin: (targets) => {
      const link = linkOf(targets)
      if (link) link.bytesLeft = 1 + Math.floor(300 * targets.draw('bytes') ** 2)
      return undefined
    },
  },
  'an answer is cut by a reset': {
    rate: 4,
    begin: (targets) => {
      const link = linkOf(targets)
      if (link === undefined) return undefined
      link.bytesLeft = 1 + Math.floor(300 * targets.draw('bytes') ** 2)
      link.onCut = () => link.reset()
      return undefined
    },
  },
  'packets are cut': {
    rate: 2,
    begin: ({ world }) => {
      world.cutsPackets = true
      return () => {
        world.cutsPackets = false
      }
    },
  },
  'the network is slow': {
    rate: 2,
    begin: ({ network, host, draw }) => {
      const links = network.linksTo(host)
      for (const link of links) {
        link.latencyMs = 300 * draw(link.id)
        link.bytesPerMs = 100
      }
      return () => {
        for (const link of links) {
          link.latencyMs = 0
          link.bytesPerMs = Number.POSITIVE_INFINITY
        }
      }
    },
  },
  'an administrator ends a session': {
    rate: 3,
    begin: (targets) => {
      backendOf(targets)?.terminate('57P01', 'terminating connection due to administrator command')
      return undefined
    },
  },
  'the server restarts': {
    rate: 3,
    begin: ({ host }) => {
      host.shutDown()
      return () => host.start()
    },
  },
  'the server crashes': {
    rate: 2,
    begin: ({ host }) => {
      host.crash()
      return () => host.start()
    },
  },
  'the server is stopped': {
    rate: 3,
    begin: ({ host }) => {
      host.freeze()
      return () => host.thaw()
    },
  },
  'statements are slow': {
    rate: 3,
    begin: ({ host, draw }) => {
      host.slowness = 2 + 60 * draw('factor') ** 2
      return () => {
        host.slowness = 1
      }
    },
  },
  'a table is locked': {
    rate: 5,
    begin: ({ world, host, draw }) => {
      const table = draw('table') < 0.6 ? 'transactions' : 'orders'
      host.lockedUntil.set(table, world.now + 200 + 4_000 * draw('ms'))
      return () => host.lockedUntil.delete(table)
    },
  },
  'statements fail': {
    rate: 4,
    begin: ({ host, draw }) => {
      host.failures = { error: oneOf(ERRORS, draw('error')) ?? error('XX000'), rate: draw('rate') }
      return () => {
        host.failures = undefined
      }
    },
  },
  'statements end their session': {
    rate: 3,
    begin: ({ host, draw }) => {
      const fatal = oneOf(FATAL_ERRORS, draw('error')) ?? error('57P01', 'FATAL')
      host.failures = { error: fatal, rate: 0.3 * draw('rate') }
      return () => {
        host.failures = undefined
      }
    },
  },
  'statements are not parsed': {
    rate: 2,
    begin: ({ host, draw }) => {
      host.parseError = oneOf(['42P01', '42501', '42703', '42883'], draw('error'))
      return () => {
        host.parseError = undefined
      }
    },
  },
  'the schema changes': {
    rate: 4,
    begin: ({ host }) => {
      host.schemaChanges += 1
      return undefined
    },
  },
  'connections are few': {
    rate: 3,
    begin: ({ host, draw }) => {
      host.maxBackends = Math.floor(4 * draw('number'))
      return () => {
        host.maxBackends = Number.POSITIVE_INFINITY
      }
    },
  },
  'the server sends notices': {
    rate: 1,
    begin: ({ host }) => {
      host.sendsNotices = true
      return () => {
        host.sendsNotices = false
      }
    },
  },
  'a standby is promoted': {
    rate: 5,
    begin: ({ world, network, draw }) => {
      const standby = standbyOf(network)
      const primary = primaryOf(network)
      if (standby === undefined || primary === undefined) return undefined
      if (draw('crash') < 0.6) primary.crash()
      else primary.freeze()
      const timeline = nextTimeline(network)
      world.clock.after(1_000 * draw('promotion'), () => standby.promote(timeline))
      return () => {
        primary.start()
        primary.thaw()
        // It may come back as the primary that it was, until somebody sees it, also while the new one restarts.
        const seenAfterMs = draw('sees') < 0.5 ? 0 : 2_000
        world.clock.after(seenAfterMs, () => primary.demote(timeline))
        if (draw('restarts') < 0.5) return
        standby.shutDown()
        world.clock.after(seenAfterMs, () => standby.start())
      }
    },
  },
  'the servers change roles': {
    rate: 3,
    begin: ({ network }) => {
      const standby = standbyOf(network)
      const primary = primaryOf(network)
      if (standby === undefined || primary === undefined) return undefined
      const timeline = nextTimeline(network)
      primary.demote(timeline)
      standby.promote(timeline)
      return undefined
    },
  },
  'two servers are primaries': {
    rate: 2,
    begin: ({ network }) => {
      const standby = standbyOf(network)
      const primary = primaryOf(network)
      if (standby === undefined || primary === undefined) return undefined
      const timeline = nextTimeline(network)
      standby.promote(timeline)
      return () => primary.demote(timeline)
    },
  },
  'the replica lags': {
    rate: 3,
    begin: ({ network, draw }) => {
      for (const host of network.hosts) if (host.isStandby) host.lagMs = 200 + 5_000 * draw('ms')
      return () => {
        for (const host of network.hosts) host.lagMs = 0
      }
    },
  },
  'secrets are renewed': {
    rate: 2,
    begin: ({ host, draw, service }) => {
      service.renewSecrets(host, draw('announced') < 0.7)
      return undefined
    },
  },
  'the event loop stops': {
    rate: 3,
    begin: ({ world, draw }) => {
      world.clock.stop(Math.floor(200 + 1_500 * draw('ms')))
      return undefined
    },
  },
  'memory is full': {
    rate: 3,
    begin: ({ service }) => service.fillMemory(),
  },
  'clients leave': {
    rate: 3,
    begin: ({ service }) => {
      service.leave()
      return undefined
    },
  },
} satisfies Record<string, Fault>

export type FaultKind = keyof typeof faults
export const faultKinds = Object.keys(faults) as FaultKind[]
export const faultOf = (kind: FaultKind): Fault => faults[kind]
