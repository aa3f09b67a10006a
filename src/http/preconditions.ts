import { hash } from 'node:crypto'
import { LruMap } from 'toad-cache'
import type { Format, List } from '../schemas/list.ts'
import { problem } from '../schemas/problem.ts'
import { ENCODING_SUFFIX } from './compression.ts'

/** Names of recent representations: the connections of all apps share most of them. A digest costs more than a lookup in this map. */
const representations = new LruMap<string>(1_000)

/** Names a list, format and query in an ETag. A digest of the connection token would allow offline guesses. */
export function representationOf(
  { name, revision }: List,
  format: Format,
  query: unknown[],
): string {
  const text = [revision, name, format, ...query].join(' ')
  const known = representations.get(text)
  if (known !== undefined) return known
  const representation = hash('sha256', text, 'base64url').slice(0, 22)
  representations.set(text, representation)
  return representation
}

/** ETag of a representation of the data of a version. It is weak: a compressed body has the same one. */
export const entityTag = (version: string, representation: string): string =>
  `W/"${version}-${representation}"`

const TAG = new RegExp(`"([0-9]{1,19}\\.[0-9]{1,19})-([A-Za-z0-9_-]{22})${ENCODING_SUFFIX}"`)

/** Data versions that the client has of a representation. */
export type KnownVersions = 'any' | ReadonlySet<string>

const NONE: KnownVersions = new Set()

/** Reads If-None-Match (RFC 9110, section 13.1.2). */
export function knownVersions(header: string | undefined, representation: string): KnownVersions {
  if (header === undefined) return NONE
  if (header === '*') return 'any'
  const known = new Set<string>()
  // No tag of this service contains a comma.
  for (const tag of header.split(',')) {
    const [, version, of] = TAG.exec(tag) ?? []
    if (version !== undefined && of === representation) known.add(version)
  }
  return known
}

/** What a request says about the state of the data. */
export interface Preconditions {
  /** Data version that the response must have; undefined: any. */
  version: string | undefined
  known: KnownVersions
}

/** True if the version of the data may be all that the client needs. It is then read before the rows. */
export const mayBeKnown = ({ known }: Preconditions): boolean => known !== 'any' && known.size > 0

/** @returns true if the response is 304 @throws ProblemError 412 */
export function isKnown({ version, known }: Preconditions, current: string): boolean {
  if (version !== undefined && version !== current) throw problem('data_changed')
  return known === 'any' || known.has(current)
}
