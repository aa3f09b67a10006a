import { Type } from '@sinclair/typebox'

/** The settings that say how much is taken on at once, for how long, and what then happens. */
export const limitSettings = {
  DATABASE_QUEUE: Type.Integer({
    default: 200,
    minimum: 0,
    maximum: 100_000,
    description: 'Requests that may wait for a server connection; the next one is refused at once.',
  }),
  ANSWER_MEMORY_MB: Type.Integer({
    default: 288,
    minimum: 16,
    maximum: 65_536,
    description: 'Answers that are read but not yet sent, in MiB; beyond it, requests are refused.',
  }),
  MAX_REQUESTS: Type.Integer({
    default: 1_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Requests under way in one instance; the next one is refused at once.',
  }),
  MAX_SOCKETS: Type.Integer({
    default: 5_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Client connections of one instance; the next one is closed at once.',
  }),
  MAX_EVENT_LOOP_DELAY_MS: Type.Integer({
    default: 1_000,
    minimum: 0,
    maximum: 60_000,
    description:
      'Requests are refused while the process is later than this on average, in ms; 0: never.',
  }),
  CLIENT_STALL_MS: Type.Integer({
    default: 120_000,
    minimum: 1_000,
    maximum: 3_600_000,
    description: 'A client that takes nothing of its answer for so long is cut off, in ms.',
  }),
  SHUTDOWN_DELAY_MS: Type.Integer({
    default: 3_000,
    minimum: 0,
    maximum: 600_000,
    description: 'After SIGTERM, how long requests are still taken while not ready, in ms.',
  }),
  SHUTDOWN_GRACE_MS: Type.Integer({
    default: 12_000,
    minimum: 100,
    maximum: 600_000,
    description: 'How long requests under way then have to finish, in ms.',
  }),
  DATABASE_REPLICA_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://',
      description: 'Standbys to read from: URLs, or hosts within one, with commas between.',
    }),
  ),
  REPLICA_MAX_LAG_MS: Type.Integer({
    default: 5_000,
    minimum: 1_000,
    maximum: 3_600_000,
    description: 'A standby that is further behind is left out, in ms.',
  }),
}
