import { open } from 'node:fs/promises'

const CHUNK_BYTES = 256 * 1024

/** The bytes of a file, always in the same buffer: a chunk is gone when the next one is asked for. */
export async function* readChunks(path: string): AsyncGenerator<Buffer> {
  const file = await open(path)
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  try {
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}
