/** What depends on the settings of this service: the page is the same file everywhere. */

/** Address of the service as the browser sees it, with the path that a proxy removes. */
export const base = new URL('../..', import.meta.url).href.replace(/\/$/, '')

/** Limit in ms. The page works without the settings. */
const TIMEOUT_MS = 3_000

/** @returns settings of this service; without the document, those that the page knows by itself */
export async function readSettings() {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const response = await fetch(`${base}/openapi.json`, { signal })
    return settingsOf(await response.json())
  } catch {
    return { address: base }
  }
}

function settingsOf({ servers, info, paths, 'x-demo-tokens': demo }) {
  // Without PUBLIC_URL, one of them is the service that serves the document.
  const isOwn = servers.some(({ url }) => url === '/')
  const parameters = Object.values(paths).flatMap(({ get }) => get.parameters)
  const limit = parameters.find(({ name }) => name === 'limit')
  return {
    demo,
    address: isOwn ? base : servers[0].url,
    contact: info.contact,
    limit: limit.description,
  }
}
