/** Follows docs/tutorials/tax-report.md to the letter, once for each language. */
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { addNodeTypes } from '../support/clients/typescript-package.ts'
import { needsProgram, run } from '../support/programs.ts'
import { DEMO_TOKEN } from '../support/seeded-service.ts'
import { followTutorial, type Printed } from '../support/tutorial.ts'

await needsProgram(t, 'curl', 'curl')
await needsProgram(t, 'python3', 'python3')

const PAGE = 'docs/tutorials/tax-report.md'
const ADDRESS = 'http://127.0.0.1:3000'
/** What a clone does not have. */
const NOT_CLONED = new Set(['.git', '.data', '.tap', 'node_modules', 'dist'])

interface State {
  afterDays: number
  years: Record<string, Record<string, string>>
  firstGap: { day: string; expected: string; found: string }
}
const expected: Record<string, State[]> = JSON.parse(await readFile('seeds/expected.json', 'utf8'))

async function follow(t: Test, language: string, folder: string): Promise<Printed> {
  const clone = `${folder}.clone`
  t.teardown(async () => {
    for (const each of [folder, clone, `${folder}.terminal-1`, `${folder}.terminal-2`])
      await rm(each, { recursive: true, force: true })
  })
  const isCloned = (path: string) => !NOT_CLONED.has(basename(path)) && !path.endsWith('.tgz')
  await cp('.', clone, { recursive: true, filter: isCloned })
  let address = ADDRESS
  return followTutorial(t, {
    page: PAGE,
    folder,
    language,
    // Any free port, because other tests run at the same time.
    environment: { PORT: '0' },
    instead: {
      // The files of this checkout are tested, not those of the last commit.
      'git clone REPOSITORY investment-data-query-service': `mv '${clone}' investment-data-query-service`,
      // 440 MB. CI runs it on each change.
      'npm ci': `ln --symbolic '${resolve('node_modules')}' node_modules`,
    },
    fillIn: (text, printed) => {
      const [token = 'idq_…'] = /idq_[\w-]{43}/.exec(printed) ?? []
      return text.replaceAll(ADDRESS, address).replaceAll('idq_…', token)
    },
    asDocumented: (printed) => {
      const [, started = address] = /The service runs at (http:\S+)\./.exec(printed) ?? []
      address = started
      return printed.replaceAll(address, ADDRESS)
    },
  })
}

for (const language of ['TypeScript', 'Python']) {
  t.test(
    `${language}: each command prints what the page says, with the expected figures`,
    async (t) => {
      const folder = await mkdtemp(join(tmpdir(), 'tutorial-'))
      const printed = await follow(t, language, folder)
      if (language === 'TypeScript') await checkTypes(join(folder, 'tax-report'))
      const section = (title: string) =>
        [...printed].find(([each]) => each.includes(title))?.[1] ?? ''
      t.notMatch(section('Get a token'), DEMO_TOKEN)

      const [before, after] = expected.DEMOCORRECTION1 ?? []
      t.equal(after?.afterDays, 3)
      t.match(section('Write the report'), dividends(before?.years['2025']))
      t.match(section('The past changes'), dividends(after?.years['2025']))
      const gain =
        Number(after?.years['2025']?.realisedGain) - Number(before?.years['2025']?.realisedGain)
      t.equal(sales(section('The past changes')) - sales(section('Write the report')), gain)
      t.match(section('Gains'), `2025: gains ${after?.years['2025']?.realisedGain},`)

      const { day, expected: shares, found } = expected.DEMOGAP1?.[0]?.firstGap ?? {}
      t.match(
        section('not complete'),
        `${shares} shares on ${day}, and the rows before have ${found}`,
      )
    },
  )
}

function dividends(year: Record<string, string> = {}): string {
  const { dividendsGross, withheldTax, dividendsNet } = year
  const portfolio = `Dividends: ${dividendsGross} gross, ${withheldTax} withheld, ${dividendsNet} net`
  return `${portfolio}\nDividends on the account: ${dividendsNet}\n`
}

/** An editor shows the errors of the compiler in the programs of the page. */
async function checkTypes(folder: string): Promise<void> {
  await addNodeTypes(folder)
  const compiler = resolve('node_modules/typescript/bin/tsc')
  const options = [
    '--noEmit',
    '--strict',
    // clients/packages checks the declarations of the client.
    '--skipLibCheck',
    '--types',
    'node',
    '--module',
    'nodenext',
    '--target',
    'es2022',
  ]
  await run(process.execPath, [compiler, ...options, 'sync.mts', 'report.mts'], { cwd: folder })
}

/** Returns the proceeds of all sales of a report. Its cents are few, so a float is exact enough. */
const sales = (printed: string) => Number(/^Sales: (\S+) after costs$/m.exec(printed)?.[1])
