import pg from 'pg'
import { parameterProblem, variableProblem } from './url-parameters.ts'

const SEVERAL_HOSTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]+)(.*)$/

/** Splits a list of URLs into one per host. libpq's notation allows several: `postgres://user@one:5432,two:5433/db`. */
export function serverUrls(list: string): string[] {
  if (list === '') return []
  return list.split(/,(?=postgres(?:ql)?:\/\/)/).flatMap((url) => {
    const [, before = url, hosts = '', after = ''] = SEVERAL_HOSTS.exec(url) ?? []
    return hosts.split(',').map((host) => before + host + after.replace(ALIAS, '$1verify-full'))
  })
}

/** pg treats these modes as `verify-full`, and prints a warning. */
const ALIAS =
  /(?<!uselibpqcompat=.*)([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)(?!.*uselibpqcompat=)/

const SSL_MODES = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full']

/** Returns `host:port` of a URL with one host. */
export function serverName(url: string): string {
  const { host, port } = new pg.Client(url)
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Returns the name of a database with its servers, without user and password. */
export function databaseName(list: string): string {
  const urls = serverUrls(list)
  return `${new pg.Client(urls[0]).database} on ${urls.map(serverName).join(', ')}`
}

const databaseOf = (url: string) => `${serverName(url)}/${new pg.Client(url).database}`

/** Returns the URL of the same database in a newer list, which may have another user and password. */
export const sameDatabase = (list: string, url: string): string =>
  serverUrls(list).find((each) => databaseOf(each) === databaseOf(url)) ?? url

/** True if a URL allows a standby. libpq allows one by default, the service does not. */
export const allowsStandby = (list: string) => /[?&]target_session_attrs=any(?![^&,])/.test(list)

/**
 * Checks URLs, and the variables of libpq in the environment that a connection would ignore.
 * @param targets accepted target_session_attrs
 * @throws Error whose message follows the setting's name
 */
export function checkServerUrls(
  list: string,
  environment: NodeJS.ProcessEnv = {},
  targets?: string[],
): string {
  if (!/^postgres(ql)?:\/\//.test(list)) throw new Error(EXAMPLE)
  for (const url of serverUrls(list)) {
    const problem = parameterProblem(url) ?? variableProblem(url, environment)
    if (problem !== undefined) throw new Error(problem)
    try {
      const { host, port } = new pg.Client(url)
      if (!(port > 0 && port < 65_536) || host.includes(',')) throw new Error(EXAMPLE)
    } catch (error) {
      // pg reads the files of sslrootcert, sslcert and sslkey.
      const { syscall, message } = error as NodeJS.ErrnoException
      throw new Error(syscall ? `names a file that cannot be read: ${message}` : EXAMPLE)
    }
  }
  for (const [, name, value = ''] of list.matchAll(
    /[?&](sslmode|target_session_attrs)=([^&,]*)/g,
  )) {
    const values = name === 'sslmode' ? SSL_MODES : targets
    if (values?.includes(value) === false)
      throw new Error(`has an unknown ${name}: use one of ${values.join(', ')}`)
  }
  return list
}

const EXAMPLE =
  'must be a URL like postgres://USER:PASSWORD@HOST:5432/DATABASE, with / in a password as %2F'
