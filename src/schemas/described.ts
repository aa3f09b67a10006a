import type { TSchema } from '@sinclair/typebox'

/** What a schema tells its reader, beside what it demands of the value. */
export interface Annotations {
  title: string
  description: string
  examples?: readonly unknown[]
}

/** The same demands on the value, with the words of the field that uses them. */
export function Described<T extends TSchema>(schema: T, annotations: Annotations): T {
  return { ...schema, ...annotations }
}
