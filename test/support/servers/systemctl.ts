/**
 * In place of `systemctl` where systemd does not run: starts and ends the programs of the units in a folder. It reads their
 * command, environment and credentials. What isolates them from the machine is not applied.
 * Run: node systemctl.ts FOLDER restart UNIT…
 */
import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseEnv } from 'node:util'

const [folder = '', verb = '', ...args] = process.argv.slice(2)
const units = args.filter((arg) => arg !== '--now')
const running = join(folder, 'running')
/** Paths and ports of the files, each with the one that is used here. */
const replacements: [string, string][] = JSON.parse(
  readFileSync(join(folder, 'replacements.json'), 'utf8'),
)

function here(text: string): string {
  return replacements.reduce((replaced, [from, to]) => replaced.replaceAll(from, to), text)
}

interface Command {
  line: string[]
  cwd: string
  environment: Record<string, string | undefined>
  /** The command ends by itself, and systemctl waits for it. */
  isJob: boolean
  /** Seconds until a command that has ended starts again; without it, the command stays ended. */
  restartAfter?: string | undefined
}

/** Starts "$@" again, $1 seconds after it has ended. SIGTERM goes to the process group: this loop ends with the command. */
const RESTART = `
  trap 'stopped=1' TERM
  pause=$1; shift
  while [ -z "$stopped" ]; do
    "$@" & wait $! || wait $!
    [ -n "$stopped" ] || sleep $pause
  done`

/** Units of Debian packages: the command of each one, with the files that the tutorial installs. */
const PACKAGES: Record<string, () => string[]> = {
  haproxy: () => {
    const file = join(running, 'haproxy.cfg')
    writeFileSync(file, here(readFileSync(here('/etc/haproxy/haproxy.cfg'), 'utf8')))
    return ['haproxy', '-db', '-f', file]
  },
  prometheus: () => {
    const { ARGS = '' } = parseEnv(readFileSync(here('/etc/default/prometheus'), 'utf8'))
    const files = [`--config.file=${here('/etc/prometheus/prometheus.yml')}`]
    return [
      'prometheus',
      ...files,
      `--storage.tsdb.path=${running}/prometheus`,
      ...here(ARGS).split(' '),
    ]
  },
  // No test installs this package.
  'prometheus-node-exporter': () => ['sleep', 'infinity'],
}

function commandOf(unit: string): Command {
  const line = PACKAGES[unit]?.()
  if (line) return { line, cwd: running, environment: process.env, isJob: false }
  const [name = '', instance = ''] = unit.replace('.service', '').split('@')
  const file = here(`/etc/systemd/system/${name}${instance && '@'}.service`)
  const text = here(readFileSync(file, 'utf8').replaceAll('%i', instance))
  const values = (key: string) =>
    [...text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)
  const credentials = join(running, `${unit}.credentials`)
  mkdirSync(credentials, { recursive: true })
  for (const credential of values('LoadCredential')) {
    const [id = '', path = ''] = credential.split(':')
    copyFileSync(path, join(credentials, id))
  }
  const [own = '', cwd = ''] = [values('Environment').join('\n'), values('WorkingDirectory')[0]]
  const environment = {
    PATH: process.env.PATH,
    ...parseEnv(own.replaceAll(' ', '\n').replaceAll('%d', credentials)),
  }
  for (const path of values('EnvironmentFile'))
    Object.assign(environment, parseEnv(readFileSync(path, 'utf8')))
  const [start = ''] = values('ExecStart')
  return {
    line: start.split(' '),
    cwd,
    environment,
    isJob: values('Type').includes('oneshot'),
    restartAfter: values('Restart').includes('always') ? values('RestartSec')[0] : undefined,
  }
}

function start(unit: string): void {
  const { line, cwd, environment: env, isJob, restartAfter } = commandOf(unit)
  if (restartAfter !== undefined) line.unshift('sh', '-c', RESTART, unit, restartAfter)
  const [command = '', ...rest] = line
  if (isJob) {
    const { status } = spawnSync(command, rest, {
      cwd,
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    if (status !== 0) throw new Error(`${unit} has failed`)
    return
  }
  const log = openSync(join(running, `${unit}.log`), 'a')
  const child = spawn(command, rest, { cwd, env, stdio: ['ignore', log, log], detached: true })
  child.unref()
  writeFileSync(join(running, `${unit}.pid`), String(child.pid))
}

function isRunning(pid: string): boolean {
  // A process that has ended stays in state Z until its parent asks for its exit code.
  const path = `/proc/${pid}/stat`
  return existsSync(path) && !/\) Z /.test(readFileSync(path, 'utf8'))
}

async function stop(unit: string): Promise<void> {
  const file = join(running, `${unit}.pid`)
  if (!existsSync(file)) return
  const pid = readFileSync(file, 'utf8')
  if (isRunning(pid)) process.kill(-Number(pid), 'SIGTERM')
  while (isRunning(pid)) await sleep(20)
}

for (const unit of units) {
  if (verb.includes('restart')) await stop(unit)
  // A timer only has to exist.
  if (unit.endsWith('.timer')) readFileSync(here(`/etc/systemd/system/${unit}`))
  else start(unit)
}
