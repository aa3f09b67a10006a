import { Ruleset, Spectral } from '@stoplight/spectral-core'
import owasp from '@stoplight/spectral-owasp-ruleset'
import { oas } from '@stoplight/spectral-rulesets'

/** Every rule of spectral:oas and of the OWASP ruleset. Each exception has its reason. */
const ruleset = new Ruleset({
  extends: [
    [oas, 'all'],
    [owasp, 'all'],
  ],
  rules: {
    // The owner has not chosen a license yet, so no page describes it.
    'license-url': 'off',
    // CONTACT_URL sets the contact. The committed document names no deployment.
    'info-contact': 'off',
    // The same document describes every deployment: PUBLIC_URL is the operator's, local or in production.
    'owasp:api9:2023-inventory-access': 'off',
    'owasp:api9:2023-inventory-environment': 'off',
    // The specification puts the connection token into the path. The service never logs the path.
    'owasp:api2:2023-no-credentials-in-url': 'off',
    // 401 and 405 have no quota, because the app is not known.
    'owasp:api4:2023-rate-limit': 'off',
    // The list of transfer orders has no pages and no limit. maxItems bounds all other arrays.
    'owasp:api4:2023-array-limit': 'off',
    // Requests: Node.js rejects a request line with headers above 16 KiB. Responses: identifiers and days
    // have patterns, and texts have the limit of their columns.
    'owasp:api4:2023-string-limit': 'off',
    // Texts of institutions have no form. Everything else has an enum, a pattern or a format.
    'owasp:api4:2023-string-restricted': 'off',
    // Pages of other origins may not read responses: "No CORS" in docs/decisions.md.
    'owasp:api8:2023-define-cors-origin': 'off',
  },
})

/** Lints a document. Returns a line for each problem, of any severity. */
export async function spectralProblems(text: string): Promise<string[]> {
  const spectral = new Spectral()
  spectral.setRuleset(ruleset)
  const problems = await spectral.run(JSON.parse(text))
  return problems.map(({ code, path, message }) => `${code} at ${path.join('.')}: ${message}`)
}
