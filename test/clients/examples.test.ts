import { readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import t from 'tap'
import { type Fault, startFaultProxy } from '../support/clients/fault-proxy.ts'
import { PYTHON } from '../support/clients/python.ts'
import { digitsAsText, readList } from '../support/clients/service.ts'
import { parseExact } from '../support/exact-json.ts'
import { needsProgram, run } from '../support/programs.ts'
import { addAccountTransactions, addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'

await needsProgram(t, PYTHON, 'python3')
await needsProgram(t, 'java', 'default-jdk-headless libjackson2-databind-java')

const ROOT = join(import.meta.dirname, '../..')
/** Jackson of Debian, or of another folder. */
const JAVA_CLASSPATH = process.env.JAVA_CLASSPATH ?? '/usr/share/java/*'

/** Programs by the name of their language. */
const commands = {
  TypeScript: [process.execPath, '--disable-warning=ExperimentalWarning'],
  Python: [PYTHON],
  Java: ['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', JAVA_CLASSPATH],
} as const

const service = await startService(t)
const { db } = service

/** Digits that a float does not keep, whole numbers, zeros, and a number that is printed with an exponent. */
const DIGITS = [
  '-123456789012345678901234567890123456.10000000000000000000000000000000000010',
  '100.00',
  '0.0000000000000000000000000000001',
  '7',
  '0',
  '0.00000000',
  '406.20',
  '1000000000000000000000000',
  null,
]

const caller = await addCaller(db)
const amounts = Array.from({ length: 2100 }, (_, index) => ({
  amount: DIGITS[index % DIGITS.length] ?? null,
}))
await addPortfolioTransactions(db, caller.connection, ...amounts)
const known = DIGITS.filter((digits) => digits !== null)
await addAccountTransactions(db, caller.connection, ...known.map((amount) => ({ amount })))
const credentials = { APP_TOKEN: caller.token, CONNECTION_TOKEN: caller.connection.token }

function execute(language: keyof typeof commands, args: string[], env: Record<string, string>) {
  const [command, ...flags] = commands[language]
  return run(command, [...flags, ...args], { env: { ...credentials, ...env } })
}

/** Returns the arguments that run a program. Compiles one in Java, because `java` would compile it in each run. */
async function argumentsOf(language: keyof typeof commands, path: string): Promise<string[]> {
  if (language !== 'Java') return [path]
  const folder = dirname(path)
  await run('javac', ['-cp', JAVA_CLASSPATH, '-d', folder, path])
  return ['-cp', `${folder}:${JAVA_CLASSPATH}`, basename(path, '.java')]
}

const examples = {
  TypeScript: 'list-transactions.ts',
  Python: 'list_transactions.py',
  Java: 'ListTransactions.java',
} as const

for (const [language, file] of Object.entries(examples) as [keyof typeof examples, string][]) {
  t.test(`${file}: every row once, with every digit, after failures`, async (t) => {
    // The requests of the three pages, some of them more than once.
    const faults: Fault[] = ['none', 'cut', 'none', 'unavailable', 'none']
    const times: number[] = []
    const pages: URLSearchParams[] = []
    const fault = (n: number, path: string) => {
      times[n] = Date.now()
      pages.push(new URLSearchParams(path.split('?')[1]))
      return faults[n] ?? 'none'
    }
    const retryAfter = new Date(Date.now() + 3_000).toUTCString()
    const proxy = await startFaultProxy(t, { target: service.url, fault, retryAfter })
    const printed = await execute(language, [join(ROOT, 'clients/examples', file)], {
      BASE_URL: proxy.url,
    })
    const rows = await readList(service, caller, 'portfolio')
    const wanted = rows.map(({ transactionId, amount }) => `${transactionId} ${amount}\n`)
    t.equal(printed, wanted.join(''))
    t.same(proxy.counts, { none: 3, cut: 1, unavailable: 1 })
    t.same(
      pages.map((query) => query.get('page')),
      ['0', '1', '1', '2', '2'],
    )
    const { headers } = await service.get(caller.connection.portfolio, { token: caller.token })
    const version = headers.get('data-version')
    t.same(
      pages.map((query) => query.get('version')),
      [null, version, version, version, version],
    )
    t.ok(Number(times[4]) >= Date.parse(retryAfter), 'no retry before the time of Retry-After')
  })

  t.test(`${file}: a failure prints one message and exits with code 1`, async (t) => {
    const source = await readFile(join(ROOT, 'clients/examples', file), 'utf8')
    const copy = join(t.testdir(), file)
    await writeFile(copy, source.replace('ATTEMPTS = 6', 'ATTEMPTS = 2'))
    const args = await argumentsOf(language, copy)
    const retryAfter = new Date(Date.now() + 86_400_000).toUTCString()
    const fault = (n: number): Fault => (n === 0 ? 'unavailable' : 'page')
    const proxy = await startFaultProxy(t, { target: service.url, fault, retryAfter })
    const cases = [
      [{ BASE_URL: proxy.url }, 'Status 503: .*service_unavailable'],
      [{ BASE_URL: proxy.url }, 'Status 404: <h1>'],
      [{ BASE_URL: 'http://127.0.0.1:2' }, 'No complete response from http://127.0.0.1:2: .*Conn'],
      [{ APP_TOKEN: 'a secret' }, 'APP_TOKEN and CONNECTION_TOKEN must be '],
    ] as const
    for (const [env, sentence] of cases) {
      // The message of execFile() has the output, too.
      const message = new RegExp(`^Command failed: .*\n(${sentence}.*)\n\n\\1\n$`, 'i')
      await t.rejects(execute(language, args, env), { code: 1, message })
    }
    t.same(proxy.counts, { unavailable: 1, page: 1 }, 'no retry after a day, nor after 404')
  })
}

/** The file and the command of a program, in the paragraph before it. */
const SAVED = /Save it as `(\S+)`, and run `(.+?)`.*\n\n$/

for (const fence of ['js', 'python', 'java']) {
  t.test(`guide, ${fence}: prints every digit`, async (t) => {
    const guide = await readFile(join(ROOT, 'src/http/openapi/guide.md'), 'utf8')
    const pattern = new RegExp(`^([^\n]+\n\n)\`\`\`${fence}\n(.*?)^\`\`\``, 'gms')
    const [found] = [...guide.matchAll(pattern)].filter(([block]) => isRecipe(block))
    const [, before = '', program = ''] = found ?? []
    const [, name = '', command = ''] = SAVED.exec(before) ?? []
    // A folder as `npm init -y` makes it.
    const folder = t.testdir({ 'package.json': '{ "type": "commonjs" }' })
    await writeFile(join(folder, name), program.replace('https://HOST', service.url))
    const { text } = await service.get(caller.connection.account, { token: caller.token })
    const { items } = digitsAsText(parseExact(text)) as { items: { amount: string }[] }
    const [documented = '', ...args] = command.replace("'lib/*'", JAVA_CLASSPATH).split(' ')
    const path = documented === 'node' ? process.execPath : documented
    const env = { ...credentials, PATH: process.env.PATH }
    const printed = await run(path, args, { cwd: folder, env })
    t.equal(printed, items.map(({ amount }) => `${amount}\n`).join(''))
  })
}

const isRecipe = (block: string) => block.includes('IEEE754Compatible=true')
