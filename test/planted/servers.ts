import type { Plant } from '../../tools/plant.ts'

/** Faults that need several servers, a proxy or a load. */

export const environment = { CLIENTS: 'all' }

const REPLICAS = ['test/servers/replica-reads.test.ts']
const ROTATION = ['test/servers/password-rotation.test.ts']

export const plants: Plant[] = [
  {
    name: 'a read that a replica loses is not read from the primary',
    file: 'src/postgres/replica.ts',
    search: 'if (!(error instanceof Unavailable)) throw error',
    replace: 'if (error) throw error',
    tests: REPLICAS,
  },
  {
    name: 'a replica that is silent is waited for',
    file: 'src/postgres/replica.ts',
    search: 'if (this.#server.state().quietMs >= SILENT_MS)',
    replace: 'if (this.#server.state().quietMs >= 60_000)',
    tests: REPLICAS,
  },
  {
    name: 'a replica with old rows is never left out',
    file: 'src/postgres/replica.ts',
    search: 'this.#oldReads >= OLD_READS',
    replace: 'this.#oldReads < 0',
    tests: REPLICAS,
  },
  {
    name: 'one replica serves all reads',
    file: 'src/postgres/database.ts',
    search: 'if (next) replicas.push(...replicas.splice(replicas.indexOf(next), 1))',
    replace: '',
    tests: REPLICAS,
  },
  {
    name: 'a read that a standby cancels is not repeated',
    file: 'src/postgres/failures.ts',
    search: 'export function asUnavailable(error: unknown): unknown {',
    replace:
      'export function asUnavailable(error: unknown): unknown {\n  if (hasState(error, SqlState.conflict)) return error',
    tests: ['test/servers/stale-standbys.test.ts'],
  },
  {
    name: 'new connections have the password of the start',
    file: 'src/postgres/database.ts',
    search: 'newestUrl: (known) => sameDatabase(newestUrls().url, known),',
    replace: 'newestUrl: (known) => known,',
    tests: ROTATION,
  },
  {
    name: 'SIGHUP replaces no connection',
    file: 'src/postgres/server.ts',
    search: '    this.#small.renew()\n',
    replace: '',
    tests: ROTATION,
  },
  {
    name: 'a read whose connection PostgreSQL ends is not repeated',
    file: 'src/postgres/failures.ts',
    search: '!isPoolerTimeout(error) && (isBroken(error) ||',
    replace: '!isPoolerTimeout(error) && (isCut(error) ||',
    tests: ['test/postgres/database-connections.test.ts', 'test/simulation/simulation.test.ts'],
  },
  {
    name: 'a shutdown ends the connections of requests that run',
    file: 'src/shutdown.ts',
    search: '    while (isInUse()) await sleep(50)\n',
    replace: '',
    tests: ['test/load/shutdown.test.ts'],
  },
  {
    name: 'an instance does not accept requests while it leaves the proxy',
    file: 'src/shutdown.ts',
    search: "    if (signal === 'SIGTERM') await sleep(config.SHUTDOWN_DELAY_MS)\n",
    replace: '',
    tests: ['test/load/shutdown.test.ts'],
  },
  {
    name: 'HAProxy does not repeat a request',
    file: 'docs/proxy.md',
    search: '  option redispatch\n  retry-on conn-failure empty-response\n',
    replace: '  retries 0\n',
    tests: ['test/servers/rolling-restart.test.ts'],
  },
  {
    name: 'reads are pipelined through PgBouncer',
    file: 'src/postgres/pool.ts',
    search: 'isLarge || pooler ? 1 : DEPTH',
    replace: 'isLarge ? 1 : DEPTH',
    tests: ['test/simulation/simulation.test.ts'],
  },
  {
    name: 'a read that waited too long in PgBouncer is repeated',
    file: 'src/postgres/failures.ts',
    search: '  !isPoolerTimeout(error) && (',
    replace: '  (',
    tests: ['test/servers/pgbouncer.test.ts'],
  },
]
