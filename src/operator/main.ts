/** Process of the admin CLI: `npm run operator -- --help`. */
import { withoutEmbedded } from '../config.ts'
import { operate } from './cli.ts'

// The reader of the output, such as `head`, may stop early.
process.stdout.on('error', () => {})

const stderr = (text: string) => process.stderr.write(text)

process.exitCode = await operate(process.argv.slice(2), {
  environment: process.env,
  stdout: (text) => process.stdout.write(text),
  stderr,
  withEmbedded: async (dataDir, use) => {
    const { withEmbedded } = await import('../../tools/embedded-postgres/shared.ts').catch(
      withoutEmbedded,
    )
    return await withEmbedded(dataDir, use, (sentence) => stderr(`${sentence}\n`))
  },
})
