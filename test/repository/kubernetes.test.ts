import { globSync, readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import t, { type Test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig, settings } from '../../src/config.ts'
import { readSecretFiles } from '../../src/env-file.ts'
import { shutdownMs } from '../../src/shutdown.ts'
import { installPackages } from '../../tools/install.ts'
import { operatorHere } from '../support/operator-process.ts'
import { withLengths } from '../support/with-lengths.ts'

// biome-ignore lint/suspicious/noExplicitAny: the schemas check the fields.
type Manifest = any

const FOLDER = 'deploy/kubernetes'
const read = (path: string) => readFileSync(path, 'utf8')
const kustomization = parse(read(`${FOLDER}/kustomization.yaml`))
const manifests: Manifest[] = kustomization.resources.flatMap((file: string) =>
  parseAllDocuments(read(`${FOLDER}/${file}`)).map((document) => document.toJS()),
)
const [generator] = kustomization.configMapGenerator
const literals: Record<string, string> = Object.fromEntries(
  generator.literals.map((literal: string) => literal.split('=')),
)

function manifestOf(kind: string): Manifest {
  const [found, ...others] = manifests.filter((each) => each.kind === kind)
  if (found === undefined || others.length > 0) throw new Error(`not exactly one ${kind}`)
  return found
}

const deployment = manifestOf('Deployment').spec
const jobs = manifests.filter(({ kind }) => kind === 'Job' || kind === 'CronJob')
const pods: Manifest[] = [
  deployment.template,
  ...jobs.map(({ spec }) => (spec.jobTemplate?.spec ?? spec).template),
]
const [service] = deployment.template.spec.containers
const config = readConfig({ ...literals, DATABASE_URL_FILE: '' })

const PACKAGES = new URL('../../tools/checks/node_modules/', import.meta.url).href
const KUBERNETES = 'kubernetes-models/_schemas/IoK8sApi'
const OPERATOR =
  '@kubernetes-models/prometheus-operator/_schemas/ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1'
const SCHEMAS: Record<string, string> = {
  'apps/v1': `${KUBERNETES}AppsV1`,
  'batch/v1': `${KUBERNETES}BatchV1`,
  'networking.k8s.io/v1': `${KUBERNETES}NetworkingV1`,
  'policy/v1': `${KUBERNETES}PolicyV1`,
  v1: `${KUBERNETES}CoreV1`,
  'monitoring.coreos.com/v1': OPERATOR,
}

/** Errors of a manifest by the schema of Kubernetes. A field that the schema does not read is unknown. */
async function errorsOf(manifest: Manifest): Promise<unknown[]> {
  const { validate } = await import(`${PACKAGES}${SCHEMAS[manifest.apiVersion]}${manifest.kind}.js`)
  const unknown = new Set<string>()
  const watch = (value: object, path: string): object => {
    for (const key of Object.keys(value)) unknown.add(`${path}/${key}`)
    return new Proxy(value, {
      get: (target, key) => {
        const found = Reflect.get(target, key)
        if (typeof key === 'symbol' || !Object.hasOwn(target, key)) return found
        unknown.delete(`${path}/${key}`)
        return typeof found === 'object' ? watch(found, `${path}/${key}`) : found
      },
    })
  }
  // An array also has a length.
  const isValid = validate(watch(manifest, ''))
  return isValid ? [...unknown].filter((path) => !path.endsWith('/length')) : validate.errors
}

t.test('manifests: valid by the schemas of Kubernetes, without unknown fields', async (t) => {
  installPackages('tools/checks')
  for (const manifest of manifests)
    t.same(await errorsOf(manifest), [], `${manifest.kind} ${manifest.metadata.name}`)
  const kinds = new Set(manifests.map(({ kind }) => kind))
  t.equal(kinds.size, 8, 'all kinds')

  const wrong = structuredClone(manifestOf('Deployment'))
  wrong.spec.replicas = 'two'
  t.match(await errorsOf(wrong), withLengths([{ instancePath: '/spec/replicas' }]))
  const misspelt = structuredClone(manifestOf('Deployment'))
  misspelt.spec.template.spec.containers[0].livenesProbe = {}
  t.same(await errorsOf(misspelt), ['/spec/template/spec/containers/0/livenesProbe'])
})

t.test('kustomization.yaml: lists every file, and the version of the image', async (t) => {
  const files = globSync('*.yaml', { cwd: FOLDER }).filter((file) => file !== 'kustomization.yaml')
  t.same(kustomization.resources.toSorted(), files.sort())
  const { version } = JSON.parse(read('package.json'))
  t.same(kustomization.images, [{ name: service.image, newTag: version }])
  for (const { spec } of pods) t.equal(spec.containers[0].image, service.image)
})

t.test('settings: each exists, and the secrets are in files', async (t) => {
  for (const name of Object.keys(literals)) t.ok(name.replace(/_FILE$/, '') in settings, name)
  t.equal(config.INSTANCES, deployment.replicas)
  t.ok(manifestOf('PodDisruptionBudget').spec.maxUnavailable < deployment.replicas)
  for (const { spec } of pods) {
    const [container] = spec.containers
    t.same(container.envFrom, [{ configMapRef: { name: generator.name } }])
    const files = container.env ?? []
    for (const { value } of [{ value: literals.DATABASE_URL_FILE }, ...files])
      t.equal(dirname(value), container.volumeMounts[0].mountPath)
    for (const { name, value } of files) {
      t.throws(() => readSecretFiles({ [name]: value }), { message: /ENOENT/ }, `${name} is read`)
    }
    t.match(spec.volumes[0], {
      name: container.volumeMounts[0].name,
      secret: { defaultMode: 0o440 },
    })
  }
})

t.test('ports: those of the image and of METRICS_PORT', async (t) => {
  const dockerfile = read('Dockerfile')
  const ports = Object.fromEntries(
    service.ports.map((port: Manifest) => [port.name, port.containerPort]),
  )
  t.same(ports, {
    http: Number(/ PORT=(\d+)/.exec(dockerfile)?.[1]),
    management: config.METRICS_PORT,
  })
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    const path = probe === 'readinessProbe' ? '/health/ready' : '/health/live'
    t.same(service[probe].httpGet, { path, port: 'management' }, probe)
  }
  t.ok(service.readinessProbe.timeoutSeconds > 1, '/health/ready takes up to a second')
  const own = manifestOf('Service')
  for (const { name, targetPort } of own.spec.ports) t.equal(targetPort, name)
  t.equal(own.spec.ports[1].port, ports.management)
  const [policy, database] = manifests.filter(({ kind }) => kind === 'NetworkPolicy')
  const opened = policy.spec.ingress.flatMap((rule: Manifest) => rule.ports)
  t.same(
    opened.map(({ port }: Manifest) => port),
    Object.keys(ports),
  )
  t.same(
    database.spec.egress.flatMap((rule: Manifest) => rule.ports),
    [{ port: 53, protocol: 'UDP' }, { port: 53, protocol: 'TCP' }, { port: 5_432 }],
    'DNS and PostgreSQL',
  )
})

t.test('limits: memory, time to stop, and the user of the image', async (t) => {
  const { ANSWER_MEMORY_MB } = config
  const { spec } = deployment.template
  t.ok(spec.terminationGracePeriodSeconds * 1_000 > shutdownMs(config))
  const compose = parse(read('docker-compose.yml'), { merge: true }).services.service
  const memory = /:-(\d+)g\}/.exec(compose.mem_limit)?.[1]
  t.equal(service.resources.limits.memory, `${memory}Gi`, 'as with Docker Compose')
  t.ok(Number(memory) * 1_024 > 3 * ANSWER_MEMORY_MB)
  const [, user, group] = /^USER (\d+):(\d+)$/m.exec(read('Dockerfile')) ?? []
  for (const pod of pods) {
    const [container] = pod.spec.containers
    t.match(pod.spec, {
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: Number(user),
        runAsGroup: Number(group),
        fsGroup: Number(group),
        seccompProfile: { type: 'RuntimeDefault' },
      },
    })
    t.same(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    t.ok(container.resources.limits.memory)
  }
})

t.test('updates: no instance ends before its successor is ready', async (t) => {
  t.ok(deployment.replicas > 1)
  t.same(deployment.strategy.rollingUpdate, { maxUnavailable: 0, maxSurge: 1 })
  t.equal(manifestOf('PodDisruptionBudget').spec.maxUnavailable, 1)
  const { topologyKey, maxSkew } = deployment.template.spec.topologySpreadConstraints[0]
  t.same([topologyKey, maxSkew], ['kubernetes.io/hostname', 1])
  const { startupProbe, livenessProbe, readinessProbe } = service
  t.ok(startupProbe.periodSeconds * startupProbe.failureThreshold >= 30)
  t.ok(livenessProbe.periodSeconds * livenessProbe.failureThreshold >= 60, 'busy is not dead')
  t.ok(readinessProbe.periodSeconds * readinessProbe.failureThreshold <= 5)
})

t.test('labels: each selector selects the pods or the service', async (t) => {
  const { labels } = deployment.template.metadata
  t.same(deployment.selector.matchLabels, labels)
  const [spread] = deployment.template.spec.topologySpreadConstraints
  const [policy, database] = manifests.filter(({ kind }) => kind === 'NetworkPolicy')
  const own = manifestOf('Service')
  for (const selector of [
    spread.labelSelector.matchLabels,
    own.spec.selector,
    own.metadata.labels,
    manifestOf('PodDisruptionBudget').spec.selector.matchLabels,
    policy.spec.podSelector.matchLabels,
    manifestOf('ServiceMonitor').spec.selector.matchLabels,
  ])
    t.same(selector, labels)
  for (const { metadata } of pods) t.match(metadata.labels, database.spec.podSelector.matchLabels)
  for (const { metadata } of pods.slice(1)) t.notMatch(metadata.labels, labels)
})

t.test('operator: each command exists, and each role has its secret', async (t) => {
  const commands = pods.slice(1).map(({ spec }) => spec.containers[0].args)
  t.same(
    commands.map(([, ...command]) => command.join(' ')),
    ['migrate', 'verify', 'prune', 'token expiring'],
  )
  for (const [program, ...args] of commands) {
    t.equal(program, 'operator')
    t.equal((await operatorHere([...args, '--help'], {})).code, 0)
  }
  const [own, ...others] = pods.map(({ spec }) => spec.volumes[0].secret.secretName)
  t.equal(new Set(others).size, 1)
  t.not(own, others[0])
  const guide = read('docs/deploy.md')
  for (const name of [own, others[0]]) t.match(guide, `kubectl create secret generic ${name} `)
})

t.test('monitoring: the port, the job and the rules of deploy/observability/', async (t) => {
  const [endpoint] = manifestOf('ServiceMonitor').spec.endpoints
  const { name, spec } = { name: manifestOf('Service').metadata.name, ...manifestOf('Service') }
  t.ok(spec.ports.some((port: Manifest) => port.name === endpoint.port))
  const { scrape_configs } = parse(read('deploy/observability/prometheus.yml'))
  t.equal(name, scrape_configs[0].job_name, 'the job that the rules expect')
  t.same(
    manifestOf('PrometheusRule').spec.groups,
    parse(read('deploy/observability/alerts.yml')).groups,
  )
})

t.test('each job that runs by itself has an alert, here and with systemd', async (t: Test) => {
  const rules = read('deploy/observability/alerts.yml')
  const cronJobs = jobs
    .filter(({ kind }) => kind === 'CronJob')
    .map(({ metadata }) => metadata.name)
  const timers = globSync('deploy/systemd/*.timer').map((path) => basename(path, '.timer'))
  t.same(timers.toSorted(), cronJobs.toSorted())
  for (const name of cronJobs) {
    t.match(rules, `kube_cronjob_status_last_successful_time{cronjob="${name}"}`)
    t.match(rules, `node_systemd_unit_state{name="${name}.service", state="failed"}`)
  }
})

/** Names of the objects in the document. */
t.test('docs/deploy.md: names what exists', async (t: Test) => {
  const guide = read('docs/deploy.md')
  for (const { metadata } of jobs) t.match(guide, metadata.name)
  for (const [, path = ''] of guide.matchAll(/`(deploy\/[\w./-]+)`/g))
    t.equal(globSync(path).length, 1, path)
})
