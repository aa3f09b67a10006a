import t from 'tap'
import { type Mutant, mutantsOf } from '../../tools/mutants/mutators.ts'
import { linesMutants } from '../../tools/mutants/text-mutators.ts'

const applied = (code: string, mutants: Mutant[]) =>
  mutants.map(({ start, end, text }) => code.slice(0, start) + text + code.slice(end))
const changesOf = (code: string) => applied(code, mutantsOf(code))

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

t.test('SQL without a tag, as in migrations: mutants of conditions', async (t) => {
  t.strictSame(changesOf('const text = () => `update row set n = n + 1 where a <= 7`'), [
    'const text = () => undefined',
    ...[
      'update row set n = n + 1 where a < 7',
      'update row set n <> n + 1 where a <= 7',
      'update row set n = n - 1 where a <= 7',
      'update row set n = n + 2 where a <= 7',
    ].map((changed) => `const text = () => \`${changed}\``),
  ])
})

t.test('Python, YAML and shell: mutants of lines, none of comments', async (t) => {
  const mutants = (code: string, file: string) => applied(code, linesMutants(code, file))
  t.strictSame(mutants('"""Doc 1."""\nif a == 3:  # 5\n    return None', 'x.py'), [
    '"""Doc 1."""\nif a == 4:  # 5\n    return None',
    '"""Doc 1."""\nif a != 3:  # 5\n    return None',
  ])
  t.strictSame(mutants('service:\n  init: true', 'x.yml'), [
    'service:\n  init: false',
    'service:\n',
  ])
  t.strictSame(mutants('a && b', 'run'), ['a || b', ':'])
})
