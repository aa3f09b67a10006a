import { glob, readFile } from 'node:fs/promises'
import t from 'tap'
import ts from 'typescript'

/** True if a pattern has an array of its own, and not one in a call or a function. A variable is not followed. */
function hasArray(node: ts.Node): boolean {
  if (ts.isArrayLiteralExpression(node)) return true
  if (ts.isCallExpression(node) || ts.isNewExpression(node) || ts.isFunctionLike(node)) return false
  if (ts.isElementAccessExpression(node) || ts.isComputedPropertyName(node)) return false
  return ts.forEachChild(node, (child) => hasArray(child) || undefined) === true
}

/** Assertions of tap whose patterns accept an array with further items. */
const ASSERTION = /\bt\w*\.(match|has|throws|rejects)$/

/** Finds those assertions with an array in their pattern. */
function arrayPatterns(path: string, text: string): string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ASSERTION.test(node.expression.getText())) {
      const [, pattern] = node.arguments
      const { line } = file.getLineAndCharacterOfPosition(node.getStart())
      if (pattern !== undefined && hasArray(pattern)) found.push(`${path}:${line + 1}`)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

t.test('patterns of t.match() have the lengths of their arrays', async (t) => {
  const found: string[] = []
  const exclude = (path: string) => path.endsWith('node_modules')
  for await (const path of glob('test/**/*.ts', { exclude }))
    found.push(...arrayPatterns(path, await readFile(path, 'utf8')))
  t.same(found, [], 'withLengths() adds them')
})

t.test('the check finds an array at the top of a pattern, and in an object', (t) => {
  t.same(arrayPatterns('a', 't.match(a, { b: [1] })\nt.match(a, [1] as const)'), ['a:1', 'a:2'])
  t.same(arrayPatterns('c', 't.rejects(a, c ? [1] : { ...{ b: [1] } })'), ['c:1'])
  t.same(arrayPatterns('b', 't.match(a, withLengths([1]))\nt.match(a, b[1])'), [])
  t.end()
})
