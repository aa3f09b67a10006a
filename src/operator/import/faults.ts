import { counted } from '../counted.ts'

/** What keeps a row from being imported. */
export interface Fault {
  file: string
  /** The first line of a file is 1. */
  line: number
  /** The field, where one is at fault and not the whole line. */
  field?: string
  reason: string
}

/** How many faults are told in full. */
export const SHOWN_FAULTS = 20

/** Nothing was imported, because rows are at fault. The message tells the first of them, one a line. */
export class ImportRejected extends Error {
  override name = 'ImportRejected'
  readonly faults: Fault[]
  /** All of them, those that are not in `faults` included. */
  readonly total: number

  constructor(faults: Fault[], total: number) {
    const lines = faults.map(({ file, line, field, reason }) =>
      [`${file}:${line}`, field, reason].filter((part) => part !== undefined).join(': '),
    )
    const more = total - faults.length
    if (more > 0) lines.push(`… and ${counted(more, 'more fault')}`)
    const count = total === 1 ? 'One fault' : counted(total, 'fault')
    super(`${count} in the input, so that nothing was imported:\n${lines.join('\n')}`)
    this.faults = faults
    this.total = total
  }
}

/** A fault by the number of its line, counted through all files of the import. */
export interface FaultAtLine {
  line: number
  field?: string | undefined
  reason: string
}

/** Keeps the first faults and counts the others. */
export class FaultList {
  readonly first: FaultAtLine[] = []
  total = 0

  add(fault: FaultAtLine): void {
    this.total += 1
    if (this.first.length < SHOWN_FAULTS) this.first.push(fault)
  }
}
