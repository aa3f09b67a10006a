import t from 'tap'
import { mutantsOf } from './mutators.ts'

const changesOf = (code: string) =>
  mutantsOf(code).map(({ start, end, text }) => code.slice(0, start) + text + code.slice(end))

t.test('SQL: mutants of boundaries and conditions', async (t) => {
  t.strictSame(changesOf('const where = sql`a.day >= b and a.total is not null`'), [
    'const where = sql`a.day > b and a.total is not null`',
    'const where = sql`a.day >= b or a.total is not null`',
    'const where = sql`a.day >= b and a.total is null`',
  ])
})

t.test('query builder: a mutant without each call', async (t) => {
  const changes = changesOf("const rows = all.orderBy('day', 'desc').limit(count)")
  t.ok(changes.includes("const rows = all.orderBy('day', 'desc')"))
  t.ok(changes.includes('const rows = all.limit(count)'))
  t.ok(changes.includes("const rows = all.orderBy('day', 'asc').limit(count)"))
})

t.test('conditions: mutants with true, false and another boundary', async (t) => {
  t.strictSame(changesOf('const first = page > 0 ? a : b'), [
    'const first = true ? a : b',
    'const first = false ? a : b',
    'const first = page >= 0 ? a : b',
    'const first = page > 1 ? a : b',
  ])
})

t.test('imports, types and texts for people: no mutants', async (t) => {
  const code = `import { a } from 'a'
type Page = 'first' | 'later'
interface Row { kind: 'x' }`
  t.strictSame(changesOf(code), [])
  t.strictSame(changesOf("const schema = { title: 'Page', description: 'the page' }"), [])
})
