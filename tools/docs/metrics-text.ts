import type { Test } from 'tap'
import { startIssuer } from '../../test/support/issuer.ts'
import { metricsUrl } from '../../test/support/metrics.ts'
import { addCaller } from '../../test/support/rows.ts'
import { startService } from '../../test/support/service.ts'
import { until } from '../../test/support/until.ts'

export const METRICS_FILE = 'docs/reference/metrics.txt'

/** Returns the response of /metrics of a service with all features, after one request. */
export async function scrapeAll(t: Test): Promise<string> {
  const issuer = await startIssuer(t)
  const service = await startService(t, {
    environment: {
      ...issuer.environment,
      METRICS_PORT: '0',
      INSTANCES: '2',
      RATE_LIMIT_PER_MINUTE: '10',
      REDIS_URL: 'redis://127.0.0.1:9',
    },
  })
  const { token, connection } = await addCaller(service.db)
  await service.get(connection.orders, { token })
  let text = ''
  await until('the request is counted', async () => {
    text = await (await fetch(metricsUrl(service))).text()
    return text.includes('\nhttp_requests_total{')
  })
  return text
}

/** Removes the values, versions, and the metrics of the process and of Node.js. */
export function metricsText(scraped: string): string {
  const metrics = scraped.split(/\n+(?=# HELP )/)
  const own = metrics.filter((metric) => !/^# HELP (process|nodejs)_/.test(metric))
  const lines = own.flatMap((metric) => ['', ...metric.trim().split('\n')])
  const series = lines.map((line) =>
    line.startsWith('#')
      ? line
      : line.replace(/ \S+$/, '').replace(/version="[^"]*"/, 'version="…"'),
  )
  return `${series.slice(1).join('\n')}\n`
}
