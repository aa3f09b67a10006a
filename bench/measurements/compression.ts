import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { SYNC_FROM } from '../load/loads.ts'
import { median } from '../load/statistics.ts'
import { digits, table } from '../report/tables.ts'
import type { Fixture } from '../servers/fixture.ts'
import { addressOf } from '../servers/targets.ts'

type Compress = (body: Buffer) => Promise<Buffer>

const { BROTLI_PARAM_QUALITY: QUALITY, ZSTD_c_compressionLevel: LEVEL } = zlib.constants
const ENCODINGS: Record<string, { levels: number[]; at: (level: number) => Compress }> = {
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

/** Size and processor time of the bodies of loads (a) and (b), at each compression level. */
export async function measureCompression({ service }: Fixture): Promise<string> {
  const bodyOf = async (from?: string) => {
    const query = { connection: 1, limit: 1000, page: 0, ...(from ? { from } : {}) }
    const headers = { ...service.headers(1), 'accept-encoding': 'identity' }
    return Buffer.from(
      await (await fetch(addressOf(service, service.page(query)), { headers })).bytes(),
    )
  }
  const bodies = [await bodyOf(), await bodyOf(SYNC_FROM)]
  const rows: string[][] = [['identity', ...bodies.flatMap((body) => [kilobytes(body), '', ''])]]
  for (const [name, { levels, at }] of Object.entries(ENCODINGS)) {
    for (const level of levels) {
      const cells: string[] = []
      for (const body of bodies) cells.push(...(await cellsOf(body, at(level))))
      rows.push([`${name} ${level}`, ...cells])
    }
  }
  const columns = ['KB', 'times smaller', 'CPU ms']
  return table(
    ['Level', ...columns.map((c) => `(a) ${c}`), ...columns.map((c) => `(b) ${c}`)],
    rows,
  )
}

async function cellsOf(body: Buffer, compress: Compress): Promise<string[]> {
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
