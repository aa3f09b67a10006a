import t from 'tap'
import { fuzz } from './fuzz.ts'

t.test('random requests: documented responses', fuzz)
