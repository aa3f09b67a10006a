import { sendRequest } from './http-client.ts'
import type { Service } from './service.ts'

/** Values of a scrape by series, such as `up{server="primary"}`. */
export async function scrape(service: Service): Promise<Map<string, number>> {
  return seriesOf((await sendRequest(metricsUrl(service))).text)
}

/** Values by series in the text format of Prometheus. */
export function seriesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end + 1))]
    }),
  )
}

/** URL of the metrics of a service with METRICS_PORT=0, from its log. */
export function metricsUrl(service: Service): string {
  const [, url] = /metrics are served at (http:\S+\/metrics)/.exec(service.log.join('')) ?? []
  return String(url)
}
