import t from 'tap'
import { fuzz } from './fuzz.ts'

t.test('20,000 requests: documented responses', (t) => fuzz(t, 20_000))
