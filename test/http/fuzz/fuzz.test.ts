import t from 'tap'
import { fuzz } from './fuzz.ts'

t.test('2,000 requests: documented responses', (t) => fuzz(t, 2_000))
