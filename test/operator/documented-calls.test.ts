import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { createDatabase } from '../support/database.ts'
import { operatorHere } from '../support/operator-process.ts'

/** Exit code of a call that the program does not understand: a wrong command, option or value. */
const USAGE = 2

/** Id of no token, for the placeholder of the pages. */
const TOKEN_ID = '00000000-0000-4000-8000-000000000000'

/** Calls of the operator in the code blocks of the pages, each with its page. */
const calls = globSync('docs/*.md').flatMap((page) => {
  const blocks = readFileSync(page, 'utf8').matchAll(/^```(?:sh|text)\n(.*?)^```/gms)
  const lines = [...blocks].flatMap(([, block = '']) => block.replaceAll('\\\n', ' ').split('\n'))
  return lines.flatMap((line) => {
    const [, call] = /(?:\.\/|migrate )operator ([^#|><;&)]*)/.exec(line) ?? []
    return call === undefined ? [] : [{ page, call: call.replace(/ 2$/, '').trim() }]
  })
})

t.test('pages: the program understands each call of the operator', async (t) => {
  const { url } = await createDatabase(t)
  t.comment(`${calls.length} calls`)
  t.ok(calls.length >= 15)
  for (const { page, call } of calls) {
    t.comment(`${page}: operator ${call}`)
    const args = call
      .replace('revoke ID', `revoke ${TOKEN_ID}`)
      .replace(/--connection (ID|"\$CONNECTION_ID")/, '--connection 1')
      .match(/'[^']*'|"[^"]*"|\S+/g)
      ?.map((word) => word.replaceAll(/^['"]|['"]$/g, ''))
    const { code, stderr } = await operatorHere(args ?? [], { DATABASE_URL: url })
    t.not(code, USAGE, `${page}: operator ${call}: ${stderr}`)
  }
})
