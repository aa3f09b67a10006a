interface LibpqParameter {
  /** True if a connection obeys it. Its value is checked elsewhere. */
  isObeyed?: true
  /** Values that ask for nothing else than what a connection does anyway. */
  ignored?: RegExp
  /** Variable of libpq with the same meaning. pg obeys none of these. */
  variable?: string
  /** What to do instead of a value that cannot be obeyed. */
  advice?: string
}

/** The programs have their own limits of time. */
const ANY = /^/

/** Parameters of a URL, and variables of the environment. Others are refused, too. */
const PARAMETERS: Record<string, LibpqParameter> = {
  application_name: { isObeyed: true },
  channel_binding: {
    ignored: /^(disable|prefer)$/,
    variable: 'PGCHANNELBINDING',
    advice: 'use sslmode=verify-full, which proves the server',
  },
  client_encoding: { ignored: /^(auto|utf-?8)$/i },
  connect_timeout: { ignored: ANY },
  dbname: { advice: 'write the database as the path of the URL' },
  fallback_application_name: { isObeyed: true },
  gssdelegation: { ignored: /^0$/, variable: 'PGGSSDELEGATION' },
  gssencmode: { ignored: /^(disable|prefer)$/, variable: 'PGGSSENCMODE' },
  host: { isObeyed: true },
  hostaddr: { variable: 'PGHOSTADDR', advice: 'write the address as the host of the URL' },
  keepalives: { ignored: ANY },
  keepalives_count: { ignored: ANY },
  keepalives_idle: { ignored: ANY },
  keepalives_interval: { ignored: ANY },
  load_balance_hosts: { ignored: /^disable$/, variable: 'PGLOADBALANCEHOSTS' },
  max_protocol_version: { ignored: ANY },
  min_protocol_version: { ignored: /^3\.0$/, variable: 'PGMINPROTOCOLVERSION' },
  options: { isObeyed: true },
  passfile: { advice: 'use a file with the whole URL (DATABASE_URL_FILE)' },
  password: { isObeyed: true },
  port: { isObeyed: true },
  replication: { ignored: /^(false|off|no|0)$/ },
  require_auth: {
    variable: 'PGREQUIREAUTH',
    advice:
      'a password is never sent in clear text or as MD5 without TLS; sslmode=verify-full proves the server',
  },
  requirepeer: { variable: 'PGREQUIREPEER' },
  requiressl: { ignored: /^0$/, variable: 'PGREQUIRESSL' },
  service: { variable: 'PGSERVICE', advice: 'write its parameters into the URL' },
  // Of pg.
  ssl: { isObeyed: true },
  // The minimum of Node.js is TLS 1.2.
  ssl_max_protocol_version: { ignored: /^(TLSv1\.3)?$/i, variable: 'PGSSLMAXPROTOCOLVERSION' },
  ssl_min_protocol_version: {
    ignored: /^(TLSv1|TLSv1\.1|TLSv1\.2)$/i,
    variable: 'PGSSLMINPROTOCOLVERSION',
  },
  sslcert: { isObeyed: true, variable: 'PGSSLCERT' },
  sslcertmode: { ignored: /^allow$/, variable: 'PGSSLCERTMODE' },
  sslcompression: { ignored: /^0$/, variable: 'PGSSLCOMPRESSION' },
  sslcrl: { variable: 'PGSSLCRL' },
  sslcrldir: { variable: 'PGSSLCRLDIR' },
  sslkey: { isObeyed: true, variable: 'PGSSLKEY' },
  sslmode: { isObeyed: true },
  sslnegotiation: { isObeyed: true },
  sslrootcert: { isObeyed: true, variable: 'PGSSLROOTCERT' },
  sslsni: { ignored: /^1$/, variable: 'PGSSLSNI' },
  // As a variable, it may only ask for the primary: the service uses it, and a replica where one is set.
  target_session_attrs: {
    isObeyed: true,
    ignored: /^(any|primary|read-write)$/,
    variable: 'PGTARGETSESSIONATTRS',
  },
  tcp_user_timeout: { ignored: ANY },
  // Of pg.
  uselibpqcompat: { isObeyed: true },
  user: { isObeyed: true },
}

/** Values of PGSSLMODE that pg obeys. */
const PG_MODES = new Set(['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'])

/** Reads the table by a name that a user wrote. */
const parameterOf = (name: string): LibpqParameter =>
  Object.hasOwn(PARAMETERS, name) ? (PARAMETERS[name] ?? {}) : {}

/**
 * Returns the problem of a parameter that would be ignored, or undefined. A URL may ask for more security than a
 * connection has: libpq would not connect then.
 */
export function parameterProblem(url: string): string | undefined {
  const parameters = parametersOf(url)
  const names = new Set<string>()
  for (const [name, value] of parameters) {
    // It may be a part of a password that should have %3F instead of a question mark.
    const shown = /^[a-z_]{1,60}$/i.test(name) ? name : 'a parameter'
    if (names.has(name)) return `has ${shown} twice`
    names.add(name)
    if (name === 'sslrootcert' && value === 'system')
      return 'has sslrootcert=system, which cannot be obeyed: leave it out to use the authorities of Node.js'
    const { isObeyed, ignored, advice = 'remove it' } = parameterOf(name)
    if (isObeyed || ignored?.test(value)) continue
    return `has ${shown}, which cannot be obeyed: ${advice}`
  }
  return undefined
}

/**
 * Returns the problem of a variable of libpq that would be ignored, or undefined. As in libpq, a parameter of the URL
 * replaces the variable.
 */
export function variableProblem(url: string, environment: NodeJS.ProcessEnv): string | undefined {
  const parameters = parametersOf(url)
  for (const [name, { variable = '', isObeyed, ignored, advice }] of Object.entries(PARAMETERS)) {
    const value = environment[variable]
    if (!value || parameters.has(name) || ignored?.test(value)) continue
    const remedy = isObeyed ? `write ${name} into the URL` : (advice ?? 'remove it')
    return `cannot obey ${variable} of the environment: ${remedy}`
  }
  // pg would connect without TLS if it does not know the mode.
  const { PGSSLMODE: mode } = environment
  if (!mode || parameters.has('sslmode') || PG_MODES.has(mode)) return undefined
  return `cannot obey PGSSLMODE of the environment: use one of ${[...PG_MODES].join(', ')}`
}

function parametersOf(url: string): URLSearchParams {
  const [, query = ''] = /\?([^#]*)/.exec(url) ?? []
  return new URLSearchParams(query)
}
