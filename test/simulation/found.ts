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
  {
    name: 'session that closes, whose last answer has no end',
    schedule: {
      seed: 665457077,
      settings: { ...settings, size: 3, memoryMb: 1 },
      bursts: [
        { ...page, at: 11_816, kind: 'orders', app: 0, rows: 0 },
        { ...page, at: 9, kind: 'orders', app: 4, ms: 294, rows: 13, bytes: 700, leaving: 0.2 },
      ],
      faults: [
        { kind: 'statements fail', at: 19_466, lastsMs: 549, host: 1, choice: 337 },
        { kind: 'clients leave', at: 9_018, lastsMs: 2_776, host: 0, choice: 122 },
        { kind: 'an answer stops in the middle', at: 7_004, lastsMs: 1_461, host: 0, choice: 15 },
        { kind: 'the schema changes', at: 11_821, lastsMs: 3_974, host: 1, choice: 981 },
      ],
    },
  },
  {
    name: 'move to a standby behind a pooler, which is promoted, and restarts while the old primary is back',
    schedule: {
      seed: 1_919_812_660,
      settings: { ...settings, size: 3, pooler: 'keeps plans', hosts: 2, memoryMb: 1 },
      bursts: [
        { ...page, at: 3_976, app: 0, count: 2, everyMs: 1, rows: 120, ms: 8 },
        { ...page, at: 274, kind: 'export', app: 3, count: 23, rows: 0, ms: 18 },
      ],
      faults: [
        { kind: 'secrets are renewed', at: 6_226, lastsMs: 2_396, host: 0, choice: 207 },
        { kind: 'a standby is promoted', at: 4_983, lastsMs: 4_037, host: 1, choice: 616 },
        { kind: 'a standby is promoted', at: 7, lastsMs: 3_977, host: 1, choice: 141 },
      ],
    },
  },
]
