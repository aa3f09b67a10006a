/** Process of the admin CLI: `npm run operator -- --help`. */
import { withoutEmbedded } from '../config.ts'
import { operate } from './cli.ts'

// The reader of the output, such as `head`, may stop early.
process.stdout.on('error', () => {})

/** Uses the running embedded database, or starts one and stops it afterwards. */
async function withEmbedded<T>(dataDir: string, use: (url: string) => Promise<T>): Promise<T> {
  const { findRunning } = await import('../../tools/embedded-postgres/running.ts').catch(
    withoutEmbedded,
  )
  const running = await findRunning(dataDir)
  if (running) return await use(running)
  const { startEmbedded } = await import('../../tools/embedded-postgres/embedded.ts')
  const server = await startEmbedded(dataDir)
  return await use(server.url).finally(() => server.stop())
}

process.exitCode = await operate(process.argv.slice(2), {
  environment: process.env,
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  withEmbedded,
})
