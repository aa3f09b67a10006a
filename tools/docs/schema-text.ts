import type { Kysely } from 'kysely'
import { catalogOf, SCHEMA_FILE } from '../../src/operator/catalog.ts'
import type { Tables } from '../../src/postgres/tables.ts'

export { SCHEMA_FILE }

const HEADING = `-- The schema after all migrations, as the catalog of PostgreSQL has it. This file is documentation: the files of
-- migrations/ create the schema.
`

/** Text of the schema: each object as a statement. */
export async function schemaText(db: Kysely<Tables>): Promise<string> {
  const statements = (await catalogOf(db)).map((text) => `${text};\n`)
  return [HEADING, ...statements].join('\n')
}
