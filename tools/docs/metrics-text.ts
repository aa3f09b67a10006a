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

const UNIT = /_(seconds|bytes)(_total)?$/

/** Returns each metric with its type, unit, labels and meaning, without those of the process and of Node.js. */
export function metricsText(scraped: string): string {
  const metrics = scraped.split(/\n+(?=# HELP )/)
  const own = metrics.filter((metric) => !/^# HELP (process|nodejs)_/.test(metric))
  return own.map(metricText).join('\n')
}

function metricText(metric: string): string {
  const [help = '', type = '', ...series] = metric.trim().split('\n')
  const [, name = '', meaning = ''] = /^# HELP (\S+) (.*)$/.exec(help) ?? []
  const [, kind = ''] = /^# TYPE \S+ (\S+)$/.exec(type) ?? []
  const [, unit] = UNIT.exec(name) ?? []
  const labels = new Set(
    series.flatMap((line) => [...line.matchAll(/([a-z]+)="/g)].map(([, label]) => label)),
  )
  // The bound of a bucket.
  labels.delete('le')
  const parts = [name, kind]
  if (unit !== undefined) parts.push(`in ${unit}`)
  if (labels.size > 0) parts.push(`by ${[...labels].join(', ')}`)
  return `${parts.join(' ')}\n  ${meaning}\n`
}
