import { type Static, Type } from '@sinclair/typebox'

/** An identifier. The service writes it in lower case. */
export const Uuid = Type.String({
  format: 'uuid',
  pattern: '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
  title: 'Identifier',
  description: 'A UUID, written in lower case.',
  examples: ['5f0c1d7e-93b4-4f0e-8a56-2f4a7c9e1b30'],
})
export type Uuid = Static<typeof Uuid>
