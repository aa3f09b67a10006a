import type { Burst, Schedule, Settings } from './schedule.ts'

const settings: Settings = {
  size: 5,
  pooler: 'none',
  hosts: 1,
  hasReplica: false,
  memoryMb: 64,
  readsHistory: true,
}

const page: Burst = {
  at: 0,
  kind: 'page',
  app: 1,
  count: 1,
  everyMs: 0,
  ms: 0,
  rows: 1,
  bytes: 10,
  leaving: 0,
  failure: undefined,
}

/** Schedules that have found a fault, as small as they became. */
export const found: { name: string; schedule: Schedule }[] = [
  {
    name: 'connection that becomes silent between its start and its first query',
    schedule: {
      seed: 6,
      settings,
      bursts: [page, page],
      faults: [{ kind: 'all connections are silent', at: 6, lastsMs: 50, host: 0, choice: 0 }],
    },
  },
]
