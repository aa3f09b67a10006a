import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { until } from '../support/until.ts'
import type { LogCommand } from './log-writer.ts'

const WRITER = join(import.meta.dirname, 'log-writer.ts')
/** 64 KiB in one line. Standard output and its pipe buffer several of them. */
const LONG = 'x'.repeat(65_535)

/** Starts a process that writes log lines, by default to a pipe that `log()` reads. */
async function startWriter(t: Test, stdout: 'pipe' | number = 'pipe') {
  const child: ChildProcess = spawn(process.execPath, [WRITER], {
    stdio: ['ignore', stdout, 'inherit', 'ipc'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  await once(child, 'message')
  let text = ''
  child.stdout?.on('data', (chunk) => {
    text += chunk
  })
  /** @returns the number of dropped lines so far */
  const write = async (...lines: string[]): Promise<number> => {
    child.send({ write: lines } satisfies LogCommand)
    return (await once(child, 'message'))[0]
  }
  const end = async (end: 'exit' | 'shutdown', ...lines: string[]) => {
    child.send({ write: lines, end } satisfies LogCommand)
    return (await exited)[0]
  }
  return { child, write, end, log: () => text }
}

t.test('lines of one tick: one write, in order', async (t) => {
  const { write, end, log } = await startWriter(t)
  t.equal(await write('1', '2', '3'), 0)
  t.equal(await write('4'), 0)
  t.equal(await end('exit', '5'), 0)
  await until('the last line is written', () => log().includes('5'))
  t.equal(log(), '1\n2\n3\nend of a write\n4\nend of a write\n5\nend of a write\n')
})

t.test('shutdown: the last lines are written, more than the pipe buffers', async (t) => {
  const { end, log } = await startWriter(t)
  t.equal(await end('shutdown', ...Array(4).fill(LONG), 'the last line'), 0)
  await until('the last line is read', () => log().endsWith('the last line\nend of a write\n'))
  t.equal(log().length, 4 * 2 ** 16 + 'the last line\nend of a write\n'.length)
})

t.test('shutdown: a reader that has stopped does not prevent it', async (t) => {
  const { child, end } = await startWriter(t)
  child.stdout?.pause()
  t.equal(await end('shutdown', ...Array(32).fill(LONG)), 0)
})

t.test('reader stops: further lines are dropped, counted and reported once', async (t) => {
  const { child, write, end, log } = await startWriter(t)
  let sent = 0
  let reported = 0
  for (const round of [1, 2]) {
    child.stdout?.pause()
    let dropped = await write('first')
    sent += 1
    for (; dropped < round * 10; sent += 2) dropped = await write(LONG, 'short')
    t.ok(sent < round * 100, `${sent} lines`)
    t.equal(dropped % 2, 0, 'all lines of a write')
    child.stdout?.resume()
    await until('the lines are read', () => log().split('log lines were dropped').length > round)
    t.ok(log().length > round * 2 ** 20, 'one mebibyte may wait')
    t.ok(log().length < round * 2 ** 21, 'and the buffers of the pipe')
    // The last of them finds an empty buffer.
    for (let i = 0; i < 3; i += 1) t.equal(await write('after'), dropped)
    sent += 3
    const warnings = log()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
    t.equal(warnings.length, round, 'one warning')
    t.match(warnings.at(-1), { level: 40, lines: dropped - reported })
    reported = dropped
    const lines = log().match(/^(first|after|short|x+)$/gm) ?? []
    t.equal(lines.length, sent - dropped, 'each line is written or counted')
  }
  t.equal(await end('shutdown'), 0)
})

t.test('full disk: all lines are dropped and counted', async (t) => {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  const { write, end } = await startWriter(t, full)
  t.equal(await write('1', '2'), 2)
  t.equal(await write('3'), 3)
  t.equal(await end('shutdown', '4'), 0)
})

t.test('reader closes the pipe: all lines are dropped and counted', async (t) => {
  const { child, write, end } = await startWriter(t)
  child.stdout?.destroy()
  await until('lines are dropped', async () => (await write('1', '2')) > 0)
  const before = await write()
  t.equal(await write('3'), before + 1)
  t.equal(await end('exit', '4'), 0)
})
