import { randomBytes } from 'node:crypto'
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { lists } from '../../src/routes/lists.ts'
import { clientRows } from '../../tools/docs/client-rows.ts'
import { DOCUMENT, formatJson, RENEWAL } from '../../tools/docs/committed.ts'
import { COMMANDS_FILE, helpText } from '../../tools/docs/help-text.ts'
import { PICTURE_DIGEST, pictureDigest } from '../../tools/docs/page/picture.ts'
import { PLAIN_PAGE, renderPlainPage } from '../../tools/docs/page/plain-text.ts'
import { PAGE, renderPage } from '../../tools/docs/page/render.ts'
import { STORIES, storiesText } from '../../tools/docs/page/stories.ts'
import { SCHEMA_FILE, schemaText } from '../../tools/docs/schema-text.ts'
import { preparation, STATEMENTS_FILE, statementsText } from '../../tools/docs/sql-text.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { openAsOwner } from '../support/logins.ts'
import { startService } from '../support/service.ts'
import { serverStatements, statements } from '../support/statements.ts'
import { databaseUrl, dropDatabase, onServer } from '../support/template.ts'

const all = [...statements.values(), ...serverStatements]

t.test('docs/reference/openapi.json: the served document, digit by digit', async (t) => {
  const { text } = await (await startService(t)).get('/openapi.json')
  t.equal(await readFile(DOCUMENT, 'utf8'), formatJson(text), `if not: ${RENEWAL}`)
})

t.test('page /docs: made from the committed document', async (t) => {
  const page = await renderPage(await readFile(DOCUMENT, 'utf8'))
  t.equal(await readFile(PAGE, 'utf8'), page, `if not: ${RENEWAL}`)
})

t.test('picture of the page /docs: made from the page as it is', async (t) => {
  const digest = await readFile(PICTURE_DIGEST, 'utf8')
  t.equal(digest, `${await pictureDigest()}\n`, 'if not: npm run docs:picture')
})

t.test('/docs.md: made from the committed document', async (t) => {
  const text = renderPlainPage(await readFile(DOCUMENT, 'utf8'))
  t.equal(await readFile(PLAIN_PAGE, 'utf8'), text, `if not: ${RENEWAL}`)
})

t.test('stories of the page: made from docs/sandbox.md and seeds/expected.json', async (t) => {
  t.equal(await readFile(STORIES, 'utf8'), await storiesText(), `if not: ${RENEWAL}`)
})

t.test('rows of both clients: made from the committed document', async (t) => {
  for (const [file, text] of clientRows(await readFile(DOCUMENT, 'utf8')))
    t.equal(await readFile(file, 'utf8'), text, `${file.pathname}; if not: ${RENEWAL}`)
})

t.test('docs/reference/commands.txt: the help of every command', async (t) => {
  t.equal(await readFile(COMMANDS_FILE, 'utf8'), `${await helpText()}\n`, `if not: ${RENEWAL}`)
})

t.test('docs/reference/statements.sql: the statements of each list', async (t) => {
  const text = await readFile(STATEMENTS_FILE, 'utf8')
  t.equal(text, statementsText(lists), `if not: ${RENEWAL}`)
})

for (const { list } of lists) {
  t.test(`statements without those of ${list.name}: not the committed file`, async (t) => {
    const others = lists.filter((other) => other.list !== list)
    t.not(await readFile(STATEMENTS_FILE, 'utf8'), statementsText(others))
  })
}

t.test('docs/reference/statements.sql: each statement that the service compiles', async (t) => {
  const titles = all.map(({ title }) => title)
  // The operator's statements write, and run as another role.
  for (const file of globSync('src/**/*.ts', { exclude: ['src/operator/**'] })) {
    const code = await readFile(file, 'utf8')
    for (const [, title = ''] of code.matchAll(/\bcompile\(\s*'(.+?)'/g))
      t.ok(titles.includes(title), title)
  }
})

t.test(
  'docs/reference/statements.sql: the purpose, names of the parameters, and a PREPARE that PostgreSQL can run',
  async (t) => {
    const client = await openClient(t, (await createDatabase(t)).url)
    const bare = (text: string) => text.replaceAll(/[\s";]/g, '')
    for (const statement of all) {
      const { title, text, parameters } = statement
      const shown = preparation(statement)
      t.match(shown, /^-- [A-Z].{15,95}[.]\nprepare /, title)
      t.ok(bare(shown).endsWith(bare(text.replace(/^--.*\n/, ''))), `${title}: its text`)
      for (const [index, { name, type }] of parameters.entries())
        t.match(shown, new RegExp(`^  ${type},? -- [$]${index + 1}: ${name}$`, 'm'))
      await client.query(shown)
      await client.query('deallocate all')
    }
  },
)

t.test('docs/reference/schema.sql: the schema, and it creates the same one', async (t) => {
  const { url } = await createDatabase(t)
  const text = await readFile(SCHEMA_FILE, 'utf8')
  t.equal(await schemaText(openAsOwner(t, url)), text, `if not: ${RENEWAL}`)
  const name = `schema_${randomBytes(6).toString('hex')}`
  await onServer(url, `create database ${name}`)
  const copy = databaseUrl(url, name)
  t.teardown(() => dropDatabase(url, name))
  await onServer(copy, text)
  t.equal(await schemaText(openAsOwner(t, copy)), text)
})
