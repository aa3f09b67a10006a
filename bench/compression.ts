import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { SYNC_FROM } from './loads.ts'
import { digits, table } from './report.ts'
import type { Scene } from './runners.ts'
import { median } from './statistics.ts'

type Compress = (body: Buffer) => Promise<Buffer>

const { BROTLI_PARAM_QUALITY: QUALITY, ZSTD_c_compressionLevel: LEVEL } = zlib.constants
const WAYS: Record<string, { levels: number[]; at: (level: number) => Compress }> = {
  gzip: {
    levels: [1, 2, 4, 6, 9],
    at: (level) => (body) =>
      promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gzip)(body, { level }),
  },
  br: {
    levels: [0, 1, 3, 4, 5, 6, 9],
    at: (quality) => (body) =>
      promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliCompress)(body, {
        params: { [QUALITY]: quality },
      }),
  },
  zstd: {
    levels: [-1, 1, 3, 6, 9, 12],
    at: (level) => (body) =>
      promisify<Buffer, zlib.ZstdOptions, Buffer>(zlib.zstdCompress)(body, {
        params: { [LEVEL]: level },
      }),
  },
}

/** What each level makes of the bodies of the loads (a) and (b), and what it costs in processor time. */
export async function measureCompression({ targets }: Pick<Scene, 'targets'>): Promise<string> {
  const [service] = targets
  if (!service) throw new Error('the service comes first')
  const bodyOf = async (from?: string) => {
    const ask = { connection: 1, limit: 1000, page: 0, ...(from ? { from } : {}) }
    const url = `http://127.0.0.1:${service.server.port}${service.page(ask)}`
    const headers = { ...service.headers(1), 'accept-encoding': 'identity' }
    return Buffer.from(await (await fetch(url, { headers })).bytes())
  }
  const bodies = [await bodyOf(), await bodyOf(SYNC_FROM)]
  const rows: string[][] = [['identity', ...bodies.flatMap((body) => [kilobytes(body), '', ''])]]
  for (const [name, { levels, at }] of Object.entries(WAYS)) {
    for (const level of levels) {
      const cells: string[] = []
      for (const body of bodies) cells.push(...(await tryOn(body, at(level))))
      rows.push([`${name} ${level}`, ...cells])
    }
  }
  const columns = ['KB', 'times smaller', 'CPU ms']
  return table(
    ['Level', ...columns.map((c) => `(a) ${c}`), ...columns.map((c) => `(b) ${c}`)],
    rows,
  )
}

async function tryOn(body: Buffer, compress: Compress): Promise<string[]> {
  const repetitions = body.length > 100_000 ? 20 : 200
  const times: number[] = []
  let compressed = body
  for (let batch = 0; batch < 3; batch += 1) {
    const before = process.cpuUsage()
    for (let i = 0; i < repetitions; i += 1) compressed = await compress(body)
    const { user, system } = process.cpuUsage(before)
    times.push((user + system) / 1000 / repetitions)
  }
  const factor = body.length / compressed.length
  return [kilobytes(compressed), factor.toFixed(1), digits(median(times)) ?? '']
}

const kilobytes = (body: Buffer) => (body.length / 1000).toFixed(1)
