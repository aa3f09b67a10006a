import { SingleBar } from 'cli-progress'
import type { Progress } from './import-rows.ts'
import type { Input, Source } from './source.ts'

export interface ShownProgress {
  /** The inputs, with an eye on how much of them is read. */
  sources: Source[]
  update(progress: Progress): void
  stop(): void
}

/** Shows on standard error how far an import is, if that is a terminal. */
export function showProgress(inputs: Input[]): ShownProgress {
  if (!process.stderr.isTTY) return { sources: inputs, update: () => {}, stop: () => {} }
  const total = inputs.reduce((sum, { bytes }) => sum + (bytes ?? Number.NaN), 0)
  // The end of a pipe cannot be foreseen.
  const format = Number.isNaN(total)
    ? '{step}: {rows} rows'
    : '{step} {bar} {percentage} %, {rows} rows'
  const bar = new SingleBar({ format, stream: process.stderr, clearOnComplete: true, fps: 5 })
  bar.start(Number.isNaN(total) ? 1 : total, 0, { step: 'Reading', rows: 0 })
  const watched = inputs.map((input) => ({
    ...input,
    chunks: watch(input.chunks, (bytes) => bar.increment(Number.isNaN(total) ? 0 : bytes)),
  }))
  return {
    sources: watched,
    update: ({ step, rows }) =>
      bar.update({ step: step === 'reading' ? 'Reading' : 'Writing', rows }),
    stop: () => bar.stop(),
  }
}

async function* watch(chunks: AsyncIterable<Buffer>, onBytes: (bytes: number) => void) {
  for await (const chunk of chunks) {
    onBytes(chunk.length)
    yield chunk
  }
}
