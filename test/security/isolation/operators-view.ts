import { metricsUrl } from '../../support/metrics.ts'
import type { Service } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import type { World } from './world.ts'

/**
 * Holds that the log has one line for each request, which names no app but the caller's own, and that
 * no line says what it was about by more than its route.
 * @param callers the id of the app that each request came from, by request id; '' for nobody's
 */
export async function checkLog(
  { log }: Service,
  from: number,
  world: World,
  callers: Map<string, string>,
): Promise<void> {
  const written = () => log.slice(from).filter((line) => line.includes('"msg":"request"'))
  // A line is written when its answer has been sent, which its client may know before.
  await until('each request has its line', () => written().length >= callers.size)
  for (const line of written()) {
    const { requestId, app = '' } = JSON.parse(line)
    const caller = callers.get(requestId)
    if (app !== caller) throw new Error(`the log names ${app}, where ${caller} called`)
  }
  const found = leakOf(world, log.slice(from).join(''))
  if (found) throw new Error(`the log tells ${found}`)
}

/** Holds that nothing on the metrics port is about an app, or what belongs to one. */
export async function checkMetrics(service: Service, world: World): Promise<void> {
  const text = await (await fetch(metricsUrl(service))).text()
  const found = leakOf(world, text) ?? world.appIds.find((id) => text.includes(id))
  if (found) throw new Error(`the metrics tell ${found}`)
}

function leakOf(world: World, text: string): string | undefined {
  const rows = world.appIds.flatMap((id) => world.secretsOf(id))
  return [...world.names, ...rows].find((one) => text.includes(one))
}
