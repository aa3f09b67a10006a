/**
 * The URLs of a list: several URLs with commas between, of which each may name several hosts as
 * PostgreSQL's own programs read them (`postgres://user@one:5432,two:5433/database`).
 */
export function hostUrls(list: string | undefined): string[] {
  if (list === undefined) return []
  return list.split(/,(?=postgres(?:ql)?:\/\/)/).flatMap((url) => {
    const [, before = '', hosts = '', after = ''] = SEVERAL_HOSTS.exec(url) ?? []
    return hosts.split(',').map((host) => before + host + after)
  })
}

const SEVERAL_HOSTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]+)(.*)$/
