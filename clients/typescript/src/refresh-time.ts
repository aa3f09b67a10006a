import { ID_FIELDS } from './copy.ts'

/**
 * Returns the time at which the service last read the institution, for the oldest list of a copy.
 * @param copies version and time of each complete list
 * @returns null if a list is missing, or the time is not known
 */
export function oldestRefresh(copies: (string | null)[][]): Date | null {
  if (copies.length < Object.keys(ID_FIELDS).length) return null
  // A list without changes was not requested: it is as new as another one with its version.
  const times = copies.map(([version = null, time]) => {
    const same = copies.filter(([other]) => version !== null && other === version)
    const known = [time ?? '', ...same.map(([, other]) => other ?? '')]
    return known.sort().at(-1) ?? ''
  })
  const [oldest = ''] = times.sort()
  return oldest === '' ? null : new Date(oldest)
}
