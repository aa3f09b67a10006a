/** Parameters of a URL that a connection obeys. Their values are checked elsewhere. */
const OBEYED = new Set([
  'user',
  'password',
  'host',
  'port',
  'application_name',
  'fallback_application_name',
  'options',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslnegotiation',
  'target_session_attrs',
  // Of pg.
  'ssl',
  'uselibpqcompat',
])

/** Values of ignored parameters of libpq that ask for nothing else than what a connection does anyway. */
const HARMLESS: Record<string, RegExp> = {
  channel_binding: /^(disable|prefer)$/,
  client_encoding: /^(auto|utf-?8)$/i,
  // The programs have their own limits of time.
  connect_timeout: /^/,
  keepalives: /^/,
  keepalives_idle: /^/,
  keepalives_interval: /^/,
  keepalives_count: /^/,
  tcp_user_timeout: /^/,
  gssencmode: /^(disable|prefer)$/,
  gssdelegation: /^0$/,
  load_balance_hosts: /^disable$/,
  min_protocol_version: /^3\.0$/,
  max_protocol_version: /^/,
  replication: /^(false|off|no|0)$/,
  requiressl: /^0$/,
  sslcertmode: /^allow$/,
  sslcompression: /^0$/,
  sslsni: /^1$/,
  // Of PGTARGETSESSIONATTRS: the service uses the primary, and a replica where one is set.
  target_session_attrs: /^(any|primary|read-write)$/,
  // The minimum of Node.js is TLS 1.2.
  ssl_min_protocol_version: /^(TLSv1|TLSv1\.1|TLSv1\.2)$/i,
  ssl_max_protocol_version: /^(TLSv1\.3)?$/i,
}

/** Values of PGSSLMODE that pg obeys. */
const PG_MODES = new Set(['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'])

/** Variables of libpq with the meaning of a parameter. pg obeys none of these. */
const VARIABLES: Record<string, string> = {
  PGCHANNELBINDING: 'channel_binding',
  PGGSSDELEGATION: 'gssdelegation',
  PGGSSENCMODE: 'gssencmode',
  PGHOSTADDR: 'hostaddr',
  PGLOADBALANCEHOSTS: 'load_balance_hosts',
  PGMINPROTOCOLVERSION: 'min_protocol_version',
  PGREQUIREAUTH: 'require_auth',
  PGREQUIREPEER: 'requirepeer',
  PGREQUIRESSL: 'requiressl',
  PGSERVICE: 'service',
  PGSSLCERT: 'sslcert',
  PGSSLCERTMODE: 'sslcertmode',
  PGSSLCOMPRESSION: 'sslcompression',
  PGSSLCRL: 'sslcrl',
  PGSSLCRLDIR: 'sslcrldir',
  PGSSLKEY: 'sslkey',
  PGSSLMAXPROTOCOLVERSION: 'ssl_max_protocol_version',
  PGSSLMINPROTOCOLVERSION: 'ssl_min_protocol_version',
  PGSSLROOTCERT: 'sslrootcert',
  PGSSLSNI: 'sslsni',
  PGTARGETSESSIONATTRS: 'target_session_attrs',
}

/** What to do instead of parameters that cannot be obeyed. */
const ADVICE: Record<string, string> = {
  channel_binding: 'use sslmode=verify-full, which proves the server',
  dbname: 'write the database as the path of the URL',
  hostaddr: 'write the address as the host of the URL',
  passfile: 'use a file with the whole URL (DATABASE_URL_FILE)',
  require_auth:
    'a password is never sent in clear text or as MD5 without TLS; sslmode=verify-full proves the server',
  service: 'write its parameters into the URL',
}

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
    if (OBEYED.has(name) || HARMLESS[name]?.test(value)) continue
    const advice = ADVICE[name] ?? 'remove it'
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
  for (const [variable, name] of Object.entries(VARIABLES)) {
    const value = environment[variable]
    if (!value || parameters.has(name) || HARMLESS[name]?.test(value)) continue
    const advice = OBEYED.has(name) ? `write ${name} into the URL` : (ADVICE[name] ?? 'remove it')
    return `cannot obey ${variable} of the environment: ${advice}`
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
