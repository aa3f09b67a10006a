import t from 'tap'
import { checkRefreshes } from '../support/refresh-model.ts'

t.test('random lines, SIGKILL and lost sessions: results are true, copies are equal', async (t) => {
  await checkRefreshes(t, { processes: 2, lines: 60, faults: 8 })
})
