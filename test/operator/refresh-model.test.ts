import t from 'tap'
import { runs } from '../support/random.ts'
import { checkRefreshes } from '../support/refresh-model.ts'

t.test('random lines, SIGKILL and lost sessions: results are true, copies are equal', async (t) => {
  await checkRefreshes(t, { processes: 2, lines: 20 + runs(40), faults: 2 + runs(6) })
})
