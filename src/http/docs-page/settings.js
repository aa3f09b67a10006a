/** What depends on the settings of this service: the page is the same file everywhere. */

/** Address of the service as the browser sees it, with the path that a proxy removes. */
export const base = new URL('../..', import.meta.url).href.replace(/\/$/, '')

/** Limit in ms. The page works without the settings. */
const TIMEOUT_MS = 3_000

/** @returns settings of this service; if they cannot be read, the address that the page knows by itself */
export async function readSettings() {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const response = await fetch(new URL('settings.json', import.meta.url), { signal })
    return { address: base, ...(await response.json()) }
  } catch {
    return { address: base }
  }
}
