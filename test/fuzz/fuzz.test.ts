import t from 'tap'
import { fuzz } from './fuzz.ts'

t.test('Two thousand requests, good and bad, get what the document promises', (t) => fuzz(t, 2_000))
