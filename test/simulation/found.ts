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
  {
    name: 'connection that is reset before its session listens',
    schedule: {
      seed: 2,
      settings,
      bursts: [{ ...page, kind: 'deep page', count: 3, rows: 40 }, page],
      faults: [{ kind: 'all connections are reset', at: 11, lastsMs: 50, host: 0, choice: 0 }],
    },
  },
  {
    name: 'failover that ends while a connection to the old primary opens',
    schedule: {
      seed: 0,
      settings: { ...settings, size: 3, hosts: 2, memoryMb: 1 },
      bursts: [
        {
          ...page,
          app: 0,
          count: 12,
          everyMs: 200,
          rows: 120,
          failure: { at: 'bind', code: '22P02' },
        },
        { ...page, app: 0, rows: 0 },
      ],
      faults: [{ kind: 'a standby is promoted', at: 0, lastsMs: 2_000, host: 0, choice: 363 }],
    },
  },
]
