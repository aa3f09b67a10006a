import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

// Linux counts processor time in ticks of 10 ms, whatever the machine.
const TICK_MS = 10

interface Stat {
  parent: number
  /** User and system time of the process and of its threads, in ms. */
  own: number
  /** The same of its children that have exited. */
  ended: number
}

function statOf(pid: number | string): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The command, in parentheses, may hold blanks.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const at = (index: number) => fields[index] ?? 0
    return { parent: at(1), own: (at(11) + at(12)) * TICK_MS, ended: (at(13) + at(14)) * TICK_MS }
  } catch {
    return undefined
  }
}

export const parentOf = (pid: number) => statOf(pid)?.parent

/** Processor time that a process has used, in ms. */
export const cpuOf = (pid: number) => statOf(pid)?.own ?? 0

/** Ids of a process and its children. */
export function familyOf(pid: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return [pid, ...pids.filter((one) => statOf(one)?.parent === pid).map(Number)]
}

/** Processor time of a process and all its children, exited ones included, in ms. */
export function cpuOfFamily(pid: number): number {
  const parent = statOf(pid)
  if (!parent) return 0
  return familyOf(pid).reduce((sum, one) => sum + cpuOf(one), parent.ended)
}

/** Peak memory of a process since resetPeak(), in MB; undefined after its exit. */
export function peakMemory(pid: number): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    const kilobytes = /VmHWM:\s*(\d+) kB/.exec(status)?.[1]
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1024
  } catch {
    return undefined
  }
}

export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}
