import type { Plant } from '../../tools/plant.ts'
import { command as simulation, shows as violation } from './planted.ts'

/** Faults that a hundred schedules have not found. They need more schedules or another invariant, or change nothing here. */

export const command = simulation
export const shows = violation

const postgres = 'src/postgres/'
const limits = 'src/limits/'

export const plants: Plant[] = [
  {
    name: 'the parser keeps parts of a buffer that is used again',
    file: `${postgres}wire/client.ts`,
    search: "rest.emit('data', Buffer.from(chunk.subarray(start, end)))",
    replace: "rest.emit('data', chunk.subarray(start, end))",
  },
  {
    name: 'a superseded primary is used again',
    file: `${postgres}hosts.ts`,
    search: 'one.cluster === other.cluster && other.timeline > 0 && one.timeline > other.timeline',
    replace: 'one.cluster !== other.cluster',
  },
  {
    name: 'the sessions of the old primary stay after a failover',
    file: `${postgres}server.ts`,
    search: '      this.#small.abandon()\n      this.#large.abandon()\n',
    replace: '',
  },
  {
    name: 'a buffer is given back twice',
    file: `${limits}response-memory.ts`,
    search: 'if (!this.#lent.delete(buffer)) return',
    replace: '',
  },
  {
    name: 'a permit is released twice',
    file: `${limits}request-limit.ts`,
    search: '      if (isReleased) return\n',
    replace: '',
  },
  {
    name: 'a locked list delays a health check',
    file: `${postgres}readiness.ts`,
    search: 'await withDeadline(lists.check(), leftMs, () => {})',
    replace: 'await lists.check()\n      await withDeadline(Promise.resolve(), leftMs, () => {})',
  },
  {
    name: 'a client that left while its credentials were verified takes a permit',
    file: `${limits}admission.ts`,
    search: '    if (this.#isClosed) return\n',
    replace: '',
  },
  {
    name: 'rows take memory without a limit',
    file: `${postgres}wire/query.ts`,
    search: 'this.error = account?.refusal(size)',
    replace: '',
  },
  {
    name: 'an app that waited has no turn before others',
    file: `${limits}fair-queue.ts`,
    search: 'const used = Math.max(this.#used.get(tenant) ?? 0, this.#virtualTime)',
    replace: 'const used = this.#used.get(tenant) ?? 0',
  },
  {
    name: 'a read that waited for a lock keeps the others out',
    file: `${postgres}lock-breaker.ts`,
    search: '    if (read === this.#trial) this.#endTrial()\n',
    replace: '',
  },
  {
    name: 'a read that waits for a lock and never ends keeps the others out',
    file: `${postgres}pool.ts`,
    search: 'new LockBreaker(silentMs)',
    replace: 'new LockBreaker(silentMs * 1e6)',
  },
]
