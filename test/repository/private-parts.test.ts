import { glob, readFile } from 'node:fs/promises'
import t from 'tap'

t.test('private parts of pg: only src/postgres/wire names them', async (t) => {
  const names =
    /attachListeners|parsedStatements|submittedNamedStatements|_(active|queue|sent)Query|_queryQueue|connection\)?\??\.stream/i
  const found: string[] = []
  for await (const file of glob('{src,bench,tools,test,migrations,seeds}/**/*.ts', {
    exclude: ['**/node_modules/**'],
  })) {
    if (names.test(await readFile(file, 'utf8'))) found.push(file)
  }
  const outside = found.filter((file) => !file.startsWith('src/postgres/wire/'))
  t.same(outside, ['test/repository/private-parts.test.ts'])
})
