/**
 * Compares the size of the code with figures.json, and fails if a figure is higher: `npm run check:shape`.
 * With --lower, writes the lower figures. With --raise, writes all: give the reason in the commit.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'

type Figures = Record<string, number>

const FILE = join(import.meta.dirname, 'figures.json')

function sizeOfSource(): Figures {
  const files = globSync('src/**/*.ts')
  const text = files.map((file) => readFileSync(file, 'utf8')).join('')
  const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0
  const lines = count(/\n/g)
  return {
    'lines of src': lines,
    'files of src': files.length,
    // Whole percents: a change that removes code only does not fail.
    'comment lines of src, %': Math.ceil((100 * count(/^\s*(\/\/|\/\*|\*)/gm)) / lines),
    'decorations of the request': count(/\bdecorate(Request|Reply)\(/g),
    'decorations of the app': count(/\bdecorate\(/g),
  }
}

async function sizeOfRequest(): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'shape-'))
  // If root starts PostgreSQL, it runs as another user.
  chmodSync(folder, 0o711)
  const port = String(await freePort())
  const settings = {
    HOST: '127.0.0.1',
    PORT: port,
    LOG_LEVEL: 'info',
    DATA_DIR: join(folder, 'data'),
  }
  const child = fork(join(import.meta.dirname, 'measure.ts'), {
    env: { PATH: process.env.PATH, ...settings },
    execArgv: ['--disable-warning=ExperimentalWarning'],
    silent: true,
  })
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (text) => output.push(String(text)))
  const exit = once(child, 'exit')
  const [message] = await Promise.race([once(child, 'message'), exit])
  child.kill('SIGINT')
  await exit
  rmSync(folder, { recursive: true })
  if (!Array.isArray(message)) throw new Error(`the service was not measured: ${output.join('')}`)
  const [imported, functions, files] = message
  return {
    'files that a paged GET imports': imported,
    'own functions of a warm GET': functions,
    'files of these functions': files,
  }
}

const figures: Figures = { ...sizeOfSource(), ...(await sizeOfRequest()) }
const limits: Figures = JSON.parse(readFileSync(FILE, 'utf8'))
const [option] = process.argv.slice(2)
const results = new Set<string>()
for (const [name, figure] of Object.entries(figures)) {
  const limit = limits[name] ?? 0
  // Most changes remove some lines. A hint for each of them would be noise.
  const result = figure > limit ? 'too high' : figure < 0.99 * limit ? 'lower' : 'ok'
  results.add(result)
  process.stdout.write(`${result.padEnd(8)} ${name}: ${figure} (limit ${limit})\n`)
  if (option !== '--raise') figures[name] = Math.min(figure, limit)
}
if (option === '--lower' || option === '--raise') {
  writeFileSync(FILE, `${JSON.stringify(figures, null, 2)}\n`)
} else if (results.has('lower')) {
  process.stdout.write('To lower the limits: npm run check:shape -- --lower\n')
}
if (results.has('too high') && option !== '--raise') process.exitCode = 1
