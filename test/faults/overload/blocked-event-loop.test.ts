import t from 'tap'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { isProblem } from '../../support/problem.ts'
import { until } from '../../support/until.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { fillWorld, learn, questionsOf } from '../support/truth.ts'

/** A process that is late with everything. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const DATABASE_URL = await loginOfService(t, db, url)
const questions = questionsOf((await fillWorld(db, 100)).slice(0, 1))

t.test('While it is late, it refuses lists at once; it stays live, and recovers', async (t) => {
  const service = await startServiceProcess(t, {
    DATABASE_URL,
    MAX_EVENT_LOOP_DELAY_MS: '100',
    NODE_OPTIONS: `--import=${new URL('../support/processes/block-event-loop.ts', import.meta.url).href}`,
  })
  const ask = async (path: string, token = '') => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(service.url + path, { headers })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  const [{ path, token } = { path: '/', token: '' }] = questions
  const answered = async () => (await ask(path, token)).status === 200
  await until('its start is over', answered)
  const known = await learn(service.url, questions)

  service.process.kill('SIGWINCH')
  await until('it has noticed', async () => !(await answered()))
  for (const one of questions) {
    const refusal = await ask(one.path, one.token)
    const { detail } = isProblem(t, refusal, 'service_unavailable')
    t.equal(detail, 'The service is overloaded. Try again soon.')
    t.match(refusal.headers.get('retry-after'), /^[1-9]\d*$/)
  }
  t.equal((await ask('/health/live')).status, 200)

  service.process.kill('SIGWINCH')
  await until('it is in time again', answered)
  t.same(await learn(service.url, questions), known)
})
