/**
 * The demo world: two apps and their connections. Its tokens are public, as they stand here: whoever
 * seeds a database lets everybody read these connections, and nothing else.
 */
export const DEMO = {
  wealth: {
    app: 'demo-wealth',
    token: 'idq_demo_wealth_this_token_is_public',
    connections: {
      /** Over 5,000 portfolio transactions in ten years, with every type of both lists. */
      large: { token: 'DEMOLARGE1', label: 'Ten years of a busy portfolio' },
      /** What a reader can take in at a glance; the examples of the documentation. */
      small: { token: 'DEMOSMALL1', label: 'A dozen rows' },
      empty: { token: 'DEMOEMPTY1', label: 'Nothing yet' },
    },
  },
  tax: {
    app: 'demo-tax',
    token: 'idq_demo_tax_this_token_is_public',
    connections: {
      /** Of the other app, so that the first one gets a 404 for it. */
      other: { token: 'DEMOOTHER1', label: 'A connection of another app' },
    },
  },
} as const
