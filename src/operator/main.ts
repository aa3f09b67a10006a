/** Process of the admin CLI: `operator --help`. */
import './start.js'
import { setFlagsFromString } from 'node:v8'
import { readEnvFile, readSecretFiles, withoutEmbedded } from '../env-file.ts'

const { operate } = await import('./cli.ts')
// The space keeps this size. A smaller one costs an import 1.4 times the processor time; the default, 16 to 80 MB more.
setFlagsFromString('--semi-space-growth-factor=1')

// The reader of the output, such as `head`, may stop early.
process.stdout.on('error', () => {})

const stderr = (text: string) =>
  // Replaces the progress in the last line.
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : text)

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
const interrupt = new AbortController()
for (const signal of SIGNALS)
  process.on(signal, () => {
    interrupt.abort(signal)
    // The terminal and npm each send a signal for one Ctrl-C. A later one ends the process at once.
    setTimeout(() => process.on(signal, () => process.exit(1)), 500).unref()
  })

process.exitCode = await operate(process.argv.slice(2), {
  environment: () => {
    for (const warning of readEnvFile(process.env)) stderr(`${warning}\n`)
    readSecretFiles(process.env)
    return process.env
  },
  stdout: (text) =>
    new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => {
        if (error && (error as NodeJS.ErrnoException).code !== 'EPIPE') reject(error)
        else resolve(!error)
      })
    }),
  stderr,
  isTerminal: process.stderr.isTTY,
  signal: interrupt.signal,
  withEmbedded: async (dataDir, use) => {
    const { withEmbedded } = await import('../../tools/embedded-postgres/shared.ts').catch(
      withoutEmbedded,
    )
    return await withEmbedded(dataDir, use, (sentence) => {
      for (const signal of SIGNALS) process.removeAllListeners(signal)
      stderr(`${sentence}\n`)
    })
  },
})
// Nobody reads the rest of an input that stays open.
if (process.exitCode > 0) process.stdin.destroy()
if (interrupt.signal.aborted) {
  // A read of a FIFO blocks process.exit(), so the process ends by the signal. Linux ignores the signal if
  // this is process 1 of a container, which then ends by itself: it waits for nothing.
  for (const signal of SIGNALS) process.removeAllListeners(signal)
  process.kill(process.pid, interrupt.signal.reason)
}
