import { DEMO } from '../../../seeds/sample-data.ts'
import { addresses } from '../rows.ts'

export interface ReleasedRequest {
  path: string
  token: string
  headers?: Record<string, string>
}

/** A response of the release. */
export interface Recorded extends ReleasedRequest {
  status: number
  body: string
}

const QUERIES = [
  '',
  '?limit=7&page=2',
  '?from=2025-09-01&to=2025-11-30',
  '?limit=10000',
  '?since=start&limit=10000',
]
const FORMATS = ['application/x-ndjson', 'text/csv', 'application/json;IEEE754Compatible=true']

/** Both apps ask for each connection, so half of the requests are for a connection of the other app. */
export const requests: ReleasedRequest[] = Object.values(DEMO).flatMap(({ token }) =>
  ['DEMOSMALL1', 'DEMOEMPTY1', 'DEMOOTHER1'].flatMap((connection) => {
    const { portfolio, account, orders } = addresses(connection)
    return [
      { path: orders, token },
      ...[portfolio, account].flatMap((list) => [
        ...QUERIES.map((query) => ({ path: list + query, token })),
        ...FORMATS.map((accept) => ({ path: list, token, headers: { accept } })),
      ]),
    ]
  }),
)
