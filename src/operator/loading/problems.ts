import { SHOWN_PROBLEMS } from '../errors.ts'
import type { ListProperty } from './row-types.ts'

export interface Problem {
  /** In an import: number of the line in all files together, from 1. */
  line?: number
  /** In a refresh: list of the line, and number of the row in it, from 1. */
  list?: ListProperty
  row?: number
  field?: string
  detail: string
}

/** Counts the problems of an input, and keeps the first ones. */
export class Problems {
  readonly shown: Problem[] = []
  total = 0
  place: Omit<Problem, 'field' | 'detail'> = {}

  get isFull(): boolean {
    return this.shown.length >= SHOWN_PROBLEMS
  }

  add(detail: string, field?: string): undefined {
    this.total += 1
    if (!this.isFull) this.shown.push({ ...this.place, ...(field && { field }), detail })
  }
}
