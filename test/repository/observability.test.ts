import { existsSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { METRICS_FILE, metricsText, scrapeAll } from '../../tools/docs/metrics-text.ts'
import { dashboardQueries, read, ruleQueries } from '../support/alert-queries.ts'

t.test('dashboard and alerts: every metric exists, and the reference lists all', async (t) => {
  const text = await scrapeAll(t)
  t.equal(metricsText(text), read(METRICS_FILE), 'if not: npm run docs:renew')
  const typesIn = (text: string) => [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  const types = typesIn(text)
  const names = types.flatMap(([, name, type]) =>
    type === 'histogram' || type === 'summary'
      ? ['_bucket', '_sum', '_count'].map((part) => `${name}${part}`)
      : [String(name)],
  )
  // Series of Prometheus itself, and of the exporters that see the daily verification.
  const others = [
    'up',
    'ALERTS',
    'kube_cronjob_created',
    'kubelet_volume_stats_available_bytes',
    'node_filesystem_avail_bytes',
    'pg_stat_archiver_failed_count',
    'kube_cronjob_status_last_successful_time',
    'node_systemd_unit_state',
  ]
  const series = new Set([...names, ...others])
  const queries = [...dashboardQueries(), ...ruleQueries()]
  t.ok(queries.length > 50, `${queries.length} queries`)
  for (const query of queries) {
    for (const name of metricsIn(query)) t.ok(series.has(name), `${name} in ${query}`)
  }
})

/** Returns the names of the metrics in a query, without labels, functions and keywords. */
function metricsIn(query: string): string[] {
  const words = /^(by|without|and|or|unless|on|ignoring|bool)$/
  const bare = query
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]|"[^"]*"/g, ' ')
    .replaceAll(/\b(by|without|on)\s*\([^)]*\)/g, ' ')
    .replaceAll(/[a-z_]+\s*\(/g, ' ')
  return (bare.match(/[a-zA-Z_][a-zA-Z0-9_]*/g) ?? []).filter((name) => !words.test(name))
}

interface Rule {
  alert: string
  labels: { severity?: string }
  annotations: { summary?: string; runbook?: string }
}

t.test('runbook: one section for each alert', async (t) => {
  const rules = read('deploy/observability/alerts.yml')
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map((match) => String(match[1]))
  const sections = [...read('docs/runbook.md').matchAll(/^### (\w+)$/gm)].map((match) => match[1])
  t.same(sections, alerts)
  for (const name of alerts) {
    t.ok(rules.includes(`runbook: docs/runbook.md#${name.toLowerCase()}`), name)
    t.ok(
      read('deploy/observability/alerts.test.yml').includes(`alertname="${name}"`),
      'the alert has a test',
    )
  }
  const groups: { rules: Rule[] }[] = parse(rules).groups
  for (const { alert, labels, annotations } of groups.flatMap(({ rules }) => rules)) {
    t.match(labels.severity, /^(critical|warning)$/, alert)
    t.match(annotations.summary, /\w .*[.]$/, alert)
    t.equal(annotations.runbook, `docs/runbook.md#${alert.toLowerCase()}`)
  }
  for (const [, anchor] of read('docs/runbook.md').matchAll(/\]\(#(\w+)\)/g)) {
    t.ok(
      alerts.some((name) => name.toLowerCase() === anchor),
      String(anchor),
    )
  }
})

t.test('panels: do not overlap, and use the provisioned data source', async (t) => {
  const { panels } = JSON.parse(read('deploy/observability/grafana/dashboards/service.json'))
  const source = read('deploy/observability/grafana/provisioning/datasources/prometheus.yml')
  const ids = panels.map(({ id }: { id: number }) => id)
  t.equal(new Set(ids).size, ids.length, 'ids are unique')
  const cells: string[] = panels.flatMap(({ gridPos: { x, y, w, h } }: Panel) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
  )
  t.equal(new Set(cells).size, cells.length, 'no panel overlaps another')
  for (const { title, type, datasource, gridPos } of panels as Panel[]) {
    t.ok(gridPos.x + gridPos.w <= 24, title)
    if (type !== 'row') t.ok(source.includes(`uid: ${datasource?.uid}`), title)
  }
})

interface Panel {
  id: number
  type: string
  title: string
  gridPos: { x: number; y: number; w: number; h: number }
  datasource?: { uid: string }
}

t.test('compose.yml: every mounted file exists', async (t) => {
  const mounts = [...read('deploy/observability/compose.yml').matchAll(/- \.\/(\S+?):/g)]
  t.equal(mounts.length, 4)
  for (const [, path] of mounts) {
    t.ok(existsSync(new URL(`../../deploy/observability/${path}`, import.meta.url)), String(path))
  }
})
