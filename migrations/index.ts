import type { Migration } from 'kysely/migration'
import { up as appsAndConnections } from './0001-apps-and-connections.ts'
import { up as transactions } from './0002-transactions.ts'
import { up as rowCounts } from './0003-row-counts.ts'
import { up as serviceRole } from './0004-service-role.ts'
import { up as versions } from './0005-versions.ts'
import { up as refreshes } from './0006-refreshes.ts'
import { up as writer } from './0007-writer.ts'
import { up as integrity } from './0008-integrity.ts'
import { up as checkedYears } from './0009-checked-years.ts'

/** Migrations of this release by name, in order. */
export const migrations: Record<string, Migration['up']> = {
  '0001-apps-and-connections': appsAndConnections,
  '0002-transactions': transactions,
  '0003-row-counts': rowCounts,
  '0004-service-role': serviceRole,
  '0005-versions': versions,
  '0006-refreshes': refreshes,
  '0007-writer': writer,
  '0008-integrity': integrity,
  '0009-checked-years': checkedYears,
}
