import pg from 'pg'

const SEVERAL_HOSTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]+)(.*)$/

/** Splits a list of URLs into one per host. libpq's notation allows several: `postgres://user@one:5432,two:5433/db`. */
export function serverUrls(list: string): string[] {
  if (list === '') return []
  return list.split(/,(?=postgres(?:ql)?:\/\/)/).flatMap((url) => {
    const [, before = url, hosts = '', after = ''] = SEVERAL_HOSTS.exec(url) ?? []
    return hosts.split(',').map((host) => before + host + withoutAlias(after))
  })
}

/** pg treats these modes as `verify-full`, and prints a warning for each of them. */
const ALIASES = /([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/

const withoutAlias = (end: string) =>
  end.includes('uselibpqcompat=') ? end : end.replace(ALIASES, '$1verify-full')

const SSL_MODES = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full']

/** Returns `host:port` of a URL with one host. */
export function serverName(url: string): string {
  const { host, port } = new pg.Client(url)
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

function databaseOf(url: string): string {
  const { host, port, database } = new pg.Client(url)
  return `${host}:${port}/${database}`
}

/** Returns the URL of the same database in a newer list, which may have another user and password. */
export const sameDatabase = (list: string, url: string): string =>
  serverUrls(list).find((each) => databaseOf(each) === databaseOf(url)) ?? url

const targetOf = (list: string) => /[?&]target_session_attrs=([^&,]*)/.exec(list)?.[1]

/** True if a URL allows a standby. libpq allows one by default, the service does not. */
export const allowsStandby = (list: string): boolean => targetOf(list) === 'any'

/**
 * Checks a list of URLs, and returns it.
 * @param targets accepted target_session_attrs
 * @throws Error with a message that follows the name of the setting
 */
export function checkServerUrls(list: string, targets?: string[]): string {
  if (!/^postgres(ql)?:\/\//.test(list)) throw new Error(EXAMPLE)
  for (const url of serverUrls(list)) {
    try {
      const { host, port } = new pg.Client(url)
      if (!(port > 0 && port < 65_536) || host.includes(',')) throw new Error(EXAMPLE)
    } catch (error) {
      // pg reads the files of sslrootcert, sslcert and sslkey.
      const { syscall, message } = error as NodeJS.ErrnoException
      throw new Error(syscall ? `names a file that cannot be read: ${message}` : EXAMPLE)
    }
  }
  const mode = /[?&]sslmode=([^&,]*)/.exec(list)?.[1]
  if (mode !== undefined && !SSL_MODES.includes(mode))
    throw new Error(`has an unknown sslmode: use one of ${SSL_MODES.join(', ')}`)
  const target = targetOf(list)
  if (target !== undefined && targets?.includes(target) === false)
    throw new Error(`has an unknown target_session_attrs: use one of ${targets.join(', ')}`)
  return list
}

const EXAMPLE =
  'must be a URL like postgres://USER:PASSWORD@HOST:5432/DATABASE, with / in a password as %2F'
