import { readFileSync } from 'node:fs'

/** A file of the project, by its path from the root. */
export function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}

/** Every query of the dashboard, as Prometheus gets it. */
export function dashboardQueries(): string[] {
  const { panels } = JSON.parse(read('deploy/observability/grafana/dashboards/service.json'))
  const queries = panels.flatMap(({ targets = [] }: { targets?: { expr: string }[] }) =>
    targets.map(({ expr }) => expr),
  )
  return queries.map((query: string) =>
    query.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*'),
  )
}

/** Every query of the alert rules: on the line of its `expr:`, or indented below it. */
export function ruleQueries(): string[] {
  const rules = read('deploy/observability/alerts.yml')
  const matches = rules.matchAll(/^ +expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/gm)
  return [...matches].map(([, block, line]) => String(block ?? line))
}
