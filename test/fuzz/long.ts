import t from 'tap'
import { fuzz } from './fuzz.ts'

t.test('Twenty thousand requests get what the document promises', (t) => fuzz(t, 20_000))
