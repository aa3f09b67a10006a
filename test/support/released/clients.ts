import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { PYTHON } from '../clients/python.ts'
import { run } from '../programs.ts'

const folder = join(import.meta.dirname, 'clients')

/** A connection, as a client of the API reaches it. */
export interface Access {
  url: string
  token: string
  connection: string
}

/** Brings the copy in a file of SQLite up to date, as the README of the release does. */
export type Synchronize = (file: string, access: Access) => Promise<void>

/** A released package of a client. */
export interface ReleasedClient {
  name: string
  /** Copy that it made of DEMOSMALL1, from a service of release 1.0.0. */
  copy: string
  synchronize: Synchronize
}

export const CLIENT_VERSIONS = ['1.1.0', '1.2.0']

/** Name of a copy, as the READMEs name it. */
export const COPY = 'user 1'

const copyOf = (language: string, version: string) =>
  join(folder, `copy-${version}-${language}.db.gz`)

/** @param place for the files of the package */
export async function releasedTypeScriptClient(
  version: string,
  place: string,
): Promise<ReleasedClient> {
  const unpacked = await mkdtemp(join(place, 'client-'))
  const file = join(folder, `investment-data-client-${version}.tgz`)
  await promisify(execFile)('tar', ['--extract', '--gzip', `--file=${file}`], { cwd: unpacked })
  const { InvestmentData, SqliteStore } = await import(join(unpacked, 'package/dist/index.js'))
  return {
    name: `TypeScript ${version}`,
    copy: copyOf('typescript', version),
    synchronize: async (copy, { url, token, connection }) => {
      const db = new DatabaseSync(copy)
      const api = new InvestmentData({ baseUrl: url, token })
      await api.connection(connection).syncTransactions(new SqliteStore(db, COPY))
      db.close()
    },
  }
}

const COPY_ONCE = `
import sqlite3, sys
from investment_data import InvestmentData, SqliteStore
file, copy, url, token, connection = sys.argv[1:]
db = sqlite3.connect(file)
InvestmentData(url, token).connection(connection).sync_transactions(SqliteStore(db, copy))
`

export function releasedPythonClient(version: string): ReleasedClient {
  const PYTHONPATH = join(folder, `investment_data_client-${version}-py3-none-any.whl`)
  return {
    name: `Python ${version}`,
    copy: copyOf('python', version),
    synchronize: async (copy, { url, token, connection }) => {
      await run(PYTHON, ['-c', COPY_ONCE, copy, COPY, url, token, connection], {
        env: { PYTHONPATH },
      })
    },
  }
}
