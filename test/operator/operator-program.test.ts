import { execFile } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import packageJson from '../../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '../..')
const program = join(root, 'operator')
const version = `${packageJson.version}\n`

t.test('operator: runs in each folder, by a link, and as the command of the image', async (t) => {
  const link = join(t.testdir(), 'a link')
  await symlink(program, link)
  const calls: [string, string[], string][] = [
    ['./operator', [], root],
    [program, [], '/'],
    [link, [], '/'],
    // The entrypoint of the image is Node.js, and its folder is that of the program.
    [process.execPath, ['operator'], root],
    // Cron lines of 1.0.0.
    [process.execPath, ['src/operator/main.ts'], root],
    ['npm', ['run', '--silent', 'operator', '--'], root],
    ['npx', ['operator'], root],
  ]
  for (const [command, args, cwd] of calls) {
    const { stdout, stderr } = await promisify(execFile)(command, [...args, '--version'], { cwd })
    t.equal(stdout, version, `${command} ${args.join(' ')}`)
    t.equal(stderr, '')
  }
})

t.test('operator: passes arguments with spaces, and the exit code', async (t) => {
  const failed = await promisify(execFile)(program, ['app', 'create', 'two words', 'more']).catch(
    (error) => error,
  )
  t.match(failed, { code: 2, stdout: '', stderr: /^Too many arguments/ })
})
