import ts from 'typescript'

/*
 * StrykerJS 9 changes neither the text of an SQL template nor the calls of a query builder, which are most of
 * src/queries. It does not accept other mutators.
 */

/** Replacement of the text between two offsets of a source file. */
export interface Mutant {
  start: number
  end: number
  text: string
}

const operators: Record<string, string[]> = {
  '<': ['<='],
  '<=': ['<'],
  '>': ['>='],
  '>=': ['>'],
  '===': ['!=='],
  '!==': ['==='],
  '&&': ['||'],
  '||': ['&&'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '+=': ['-='],
  '-=': ['+='],
  '??=': ['='],
}

/** Mutants of SQL text: a pattern, and its replacement. */
const sqlFaults: [RegExp, string][] = [
  [/<=/g, '<'],
  [/>=/g, '>'],
  [/<(?![=>])/g, '<='],
  [/(?<!<)>(?!=)/g, '>='],
  [/(?<= )=(?= )/g, '<>'],
  [/(?<= )\+(?= )/g, '-'],
  [/(?<= )-(?= )/g, '+'],
  [/\*/g, '/'],
  [/\band\b/g, 'or'],
  [/\bis not null\b/g, 'is null'],
  [/\bis null\b/g, 'is not null'],
  [/\bdesc\b/g, 'asc'],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
  [/\bunion all\b/g, 'union'],
  [/\b[01]\b/g, '2'],
]

/** Mutants of a regular expression, without an anchor, a quantifier or a flag. */
const regexFaults: [RegExp, string][] = [
  [/(?<!\[)\^|\$(?!\{)/g, ''],
  [/[+*](?!\/)|\{\d+(,\d*)?\}/g, ''],
  [/(?<=\/)[a-z]+$/g, ''],
]

/** Strings that select an operator of SQL, as Kysely takes them. */
const sqlOperators: Record<string, string> = {
  '=': '<>',
  is: 'is not',
  'is not': 'is',
  desc: 'asc',
  asc: 'desc',
}

/** Calls whose removal leaves their receiver, of the same type: `rows.limit(1)` becomes `rows`. */
const removable = new Set([
  ...['where', 'whereRef', 'orderBy', 'limit', 'offset', 'desc', 'nullsLast'],
  ...['filter', 'sort', 'slice', 'trim', 'toLowerCase', 'replace', 'flat', 'catch', 'finally'],
])

/** Texts for people. The OpenAPI document has most of them, and a test compares it with docs/. */
const texts = new Set(['title', 'description', 'examples', 'meaning', 'detail', 'summary', 'help'])
const prose = /\p{L}+ \S+ \S+/u
/** SQL without a tag, as in migrations. */
const statement =
  /^[`']?\s*(select|insert into|update|delete from|create|alter|grant|revoke|with|perform|for) [a-z]/

/** Lists the mutants of a source file, except those of types, imports and texts for people. */
export function mutantsOf(code: string): Mutant[] {
  const mutants: Mutant[] = []
  const source = ts.createSourceFile('file.ts', code, ts.ScriptTarget.Latest, true)
  const add = (node: ts.Node, ...replacements: string[]) => {
    for (const text of replacements)
      mutants.push({ start: node.getStart(source), end: node.end, text })
  }
  const addMatches = (node: ts.Node, faults: [RegExp, string][]) => {
    for (const [pattern, text] of faults) {
      for (const { index, 0: found } of node.getText(source).matchAll(pattern)) {
        const start = node.getStart(source) + index
        mutants.push({ start, end: start + found.length, text })
      }
    }
  }
  const visit = (node: ts.Node): void => {
    if (isSkipped(node)) return
    mutate(node)
    ts.forEachChild(node, visit)
  }
  const mutate = (node: ts.Node): void => {
    if (ts.isBinaryExpression(node)) {
      const { left, operatorToken, right } = node
      if (operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken)
        add(node, left.getText(source), right.getText(source))
      else if (![left, right].some(isText) && !isTested(node))
        add(operatorToken, ...(operators[operatorToken.getText(source)] ?? []))
    } else if (ts.isIfStatement(node)) add(node.expression, 'true', 'false')
    else if (ts.isWhileStatement(node)) add(node.expression, 'false')
    else if (ts.isConditionalExpression(node)) add(node.condition, 'true', 'false')
    else if (ts.isPrefixUnaryExpression(node)) add(node, node.operand.getText(source))
    else if (ts.isExpressionStatement(node)) add(node, ';')
    else if (node.kind === ts.SyntaxKind.TrueKeyword) add(node, 'false')
    else if (node.kind === ts.SyntaxKind.FalseKeyword) add(node, 'true')
    else if (ts.isNumericLiteral(node))
      add(node, otherNumber(Number(node.text.replaceAll('_', ''))))
    else if (ts.isRegularExpressionLiteral(node)) addMatches(node, regexFaults)
    else if (ts.isStringLiteral(node)) {
      // The removal of the property or element is such a mutant.
      if (isPart(node) && sqlOperators[node.text] === undefined) return
      add(node, `'${sqlOperators[node.text] ?? (node.text === '' ? 'x' : '')}'`)
    } else if (ts.isTaggedTemplateExpression(node)) addMatches(node.template, sqlFaults)
    else if (isText(node) && statement.test(node.getText(source))) addMatches(node, sqlFaults)
    else if (isText(node) && !ts.isTaggedTemplateExpression(node.parent)) add(node, "''")
    else if (ts.isObjectLiteralExpression(node)) {
      for (const property of node.properties)
        if (!isTextOf(property) && !isFlag(property)) add(property, '...{}')
    } else if (ts.isArrayLiteralExpression(node)) {
      for (const element of node.elements) add(element, '...[]')
    } else if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      if (ts.isBlock(node.body)) add(node.body, '{}')
      else if (!ts.isVoidExpression(node.body)) add(node.body, 'undefined')
    } else if (ts.isCallExpression(node)) {
      const { expression } = node
      if (!ts.isPropertyAccessExpression(expression) || !removable.has(expression.name.text)) return
      mutants.push({ start: expression.expression.end, end: node.end, text: '' })
    }
    if ('questionDotToken' in node && node.questionDotToken)
      add(node.questionDotToken as ts.Node, ts.isPropertyAccessExpression(node) ? '.' : '')
  }
  visit(source)
  return mutants.filter(({ start, end, text }) => code.slice(start, end) !== text)
}

/** Large numbers are times in ms and sizes. No test can distinguish 1,001 ms from 1,000 ms. */
const otherNumber = (number: number) => String(number < 1_000 ? number + 1 : 0)

const isText = (node: ts.Node) =>
  ts.isStringLiteral(node) ||
  ts.isTemplateExpression(node) ||
  ts.isNoSubstitutionTemplateLiteral(node)

/** An equality that is a whole condition: the condition becomes true and false anyway. */
const isTested = (node: ts.BinaryExpression): boolean =>
  node.operatorToken.getText().endsWith('==') &&
  ((ts.isIfStatement(node.parent) && node.parent.expression === node) ||
    (ts.isConditionalExpression(node.parent) && node.parent.condition === node))

const isPart = (node: ts.Node): boolean =>
  (ts.isPropertyAssignment(node.parent) && node.parent.initializer === node) ||
  ts.isArrayLiteralExpression(node.parent)

/** A property of true or false: its value becomes the other one. */
const isFlag = (node: ts.Node): boolean =>
  ts.isPropertyAssignment(node) && ['true', 'false'].includes(node.initializer.getText())

const isTextOf = (node: ts.Node): boolean =>
  ts.isPropertyAssignment(node) && texts.has(node.name.getText())

function isSkipped(node: ts.Node): boolean {
  if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node))
    return true
  if (ts.isImportDeclaration(node) || ts.isModuleDeclaration(node) || isTextOf(node)) return true
  const tagged = ts.isTaggedTemplateExpression(node.parent ?? node)
  // Only stack traces show the name of an error.
  if (ts.isPropertyDeclaration(node) && node.name.getText() === 'name') return true
  return isText(node) && !tagged && prose.test(node.getText()) && !statement.test(node.getText())
}
