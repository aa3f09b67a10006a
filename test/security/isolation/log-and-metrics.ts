import { metricsUrl } from '../../support/metrics.ts'
import type { Service } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import type { SampleData } from './sample-data.ts'

/**
 * Checks that the log has one line for each request of a known caller, which names no other app. It has lines of some
 * rejections only. No line may contain a token, a name or a row id.
 */
export async function checkLog(
  { log }: Service,
  from: number,
  data: SampleData,
  callers: Map<string, string>,
): Promise<void> {
  const written = () => log.slice(from).filter((line) => line.includes('"msg":"request"'))
  // The client may receive the response before the service writes its line.
  const known = [...callers].filter(([, app]) => app !== '').map(([requestId]) => requestId)
  await until('each request has its line', () => {
    const ids = new Set(written().map((line) => JSON.parse(line).requestId))
    return known.every((requestId) => ids.has(requestId))
  })
  for (const line of written()) {
    const { requestId, app = '' } = JSON.parse(line)
    const caller = callers.get(requestId)
    if (app !== caller) throw new Error(`the log names ${app} instead of ${caller}`)
  }
  const found = leakOf(data, log.slice(from).join(''))
  if (found) throw new Error(`the log contains ${found}`)
}

/** Checks that the metrics contain no app id, token, name or row id. */
export async function checkMetrics(service: Service, data: SampleData): Promise<void> {
  const text = await (await fetch(metricsUrl(service))).text()
  const found = leakOf(data, text) ?? data.appIds.find((id) => text.includes(id))
  if (found) throw new Error(`the metrics contain ${found}`)
}

function leakOf(data: SampleData, text: string): string | undefined {
  const rows = data.appIds.flatMap((id) => data.secretsOf(id))
  return [...data.names, ...rows].find((one) => text.includes(one))
}
