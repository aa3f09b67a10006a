/** The faults of settings that are sound one by one, but not together; one sentence each. */
export function jointFaults(settings: NodeJS.ProcessEnv): string[] {
  return identityProviderFaults(settings)
}

function identityProviderFaults(settings: NodeJS.ProcessEnv): string[] {
  const needed = ['AUTH_ISSUER', 'AUTH_AUDIENCE', 'AUTH_JWKS_URL']
  const missing = needed.filter((name) => settings[name] === undefined)
  const given = Object.keys(settings).find((name) =>
    /^AUTH_(ISSUER|AUDIENCE|JWKS_URL|CLIENT_ID_CLAIM)$/.test(name),
  )
  const faults: string[] = []
  if (given !== undefined && missing.length > 0) {
    faults.push(`${missing.join(' and ')} must be set too, since ${given} is`)
  }
  const url = settings.AUTH_JWKS_URL
  if (url !== undefined && !isSafe(url)) {
    faults.push('AUTH_JWKS_URL must be an https address, or one of this machine')
  }
  return faults
}

/** Keys that came over an open line could be anyone's. */
function isSafe(address: string): boolean {
  const url = URL.parse(address)
  if (url?.protocol === 'https:') return true
  return url !== null && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)
}
