import type { Kysely } from 'kysely'
import type { Test } from 'tap'
import type { Tables } from '../../../src/postgres/tables.ts'
import { until } from '../../support/until.ts'
import { type ServiceProcess, startServiceProcess } from './processes/service-process.ts'
import { besiege, type Counts, nothingAmiss, type SiegeOptions } from './siege.ts'
import { fillWorld, type Known, learn, questionsOf } from './truth.ts'

/** The service as a process, with a world that is known, and clients that never leave off asking. */
export interface Besieged {
  service: ServiceProcess
  known: Known[]
  /** Makes something happen under load, and holds what is promised of every fault. */
  during(t: Test, fault: Fault, options?: Partial<SiegeOptions>): Promise<Counts>
}

/** Ends when the cause is gone: from then on, the service has to recover by itself. */
type Fault = () => Promise<void>

export interface Place {
  /** Where the rows are written, and where the service reads them. */
  db: Kysely<Tables>
  login: string
  environment?: Record<string, string>
}

/** What a request may take with the settings as they are: waiting, statement, a second of grace. */
const LIMIT_MS = 5_000 + 5_000 + 1_000
/** For the way there and back on a machine that has much to do. */
const SLACK_MS = 3_000
/**
 * From the return of the database to a service that is ready again. Two seconds are promised, and the
 * line of each test tells what they were; only a machine that has nothing else to do can be held to them.
 */
const RECOVERY_MS = 10_000

export async function startBesieged(t: Test, place: Place): Promise<Besieged> {
  const { db, login, environment = {} } = place
  const questions = questionsOf(await fillWorld(db, 3_000))
  const service = await startServiceProcess(t, { DATABASE_URL: login, ...environment })
  const known = await learn(service.url, questions)
  const during: Besieged['during'] = async (t, fault, options = {}) => {
    const end = besiege(t, {
      ...{ url: service.url, known, clients: 8, limitMs: LIMIT_MS + SLACK_MS },
      ...options,
    })
    await new Promise((resolve) => setTimeout(resolve, 300))
    await fault()
    const back = performance.now()
    const wellAgain = async () =>
      (await service.ready()) === 200 &&
      (await learn(service.url, questions.slice(0, 1)).then(
        () => true,
        () => false,
      ))
    await until('the service is ready and answers', wellAgain)
    const recoveryMs = performance.now() - back
    await new Promise((resolve) => setTimeout(resolve, 300))
    const counts = await end()
    nothingAmiss(t, counts, `, ready again after ${Math.round(recoveryMs)} ms`)
    t.ok(recoveryMs < RECOVERY_MS, `recovered by itself: ${Math.round(recoveryMs)} ms`)
    t.equal(service.process.exitCode, null, 'the process is the same')
    const now = await learn(service.url, questions)
    t.ok(
      now.every(({ digest }, index) => digest === known[index]?.digest),
      'all is as before',
    )
    return counts
  }
  return { service, known, during }
}

/** Waits until the service says that it is not ready, which it has to. */
export function untilNotReady(service: ServiceProcess): Promise<void> {
  return until('the service is not ready', async () => (await service.ready()) === 503)
}
